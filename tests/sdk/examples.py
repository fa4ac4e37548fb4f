"""Runs every program of examples/python against a node; a miner does what they ask for.

usage: examples.py URL FOLDER

FOLDER is examples/python. The node must be a new `ombra dev`. Prints one line of JSON.
"""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from chain import DEVELOPMENT, PATIENCE_SECONDS, Account, connect, same
from ombrachain.crypto import sha256_hex


class Examples:
    """Starts programs as a user of account 0 does."""

    def __init__(self, url, folder):
        self.folder = Path(folder)
        told = {"OMBRA_URL": url, "OMBRA_MNEMONIC": DEVELOPMENT, "PYTHONUTF8": "1"}
        self.environment = {**os.environ, **told}

    @contextmanager
    def start(self, name, *arguments):
        command = [sys.executable, str(self.folder / name), *arguments]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started = subprocess.Popen(
            command, env=self.environment, text=True, encoding="utf-8", **pipes
        )
        try:
            yield started
        finally:
            started.kill()
            started.communicate()

    def run(self, name, *arguments, status=0):
        with self.start(name, *arguments) as started:
            return ended(started, status)


def ended(started, status=0):
    """The lines that a program printed to its end."""
    printed, faults = started.communicate(timeout=PATIENCE_SECONDS)
    assert started.returncode == status, f"{started.args}: {faults}"
    return (printed + (faults if status else "")).splitlines()


def money(examples, alice, bob):
    printed = examples.run("balance.py")
    same(f"{alice.address} has 1000.000000 OMBRA", printed[0])
    # A fee that others pay is not paid unasked.
    Account(bob.client, 2).pay(alice.address, 1, fee=77)
    printed = examples.run("send.py", bob.address, "1.5")
    assert f"pays 1500000 micro to {bob.address}, fee 0: " in printed[0], printed
    assert printed[1].startswith("in block "), printed
    same("1001500000", bob.client.wallet.get_balance(bob.address)["balance"])
    printed = examples.run("balance.py", bob.address)
    assert any("in TRANSFER 1500000 micro" in line for line in printed), printed
    printed = examples.run("send.py", alice.address, "0", "5")
    assert "fee 5: " in printed[0] and printed[1].startswith("in block "), printed
    printed = examples.run("send.py", bob.address, "1", "-5", status=1)
    assert "fee -5: expected a whole number" in printed[-1], printed
    printed = examples.run("send.py", bob.address, "0.0000001", status=1)
    assert "at most six decimals" in printed[-1], printed
    printed = examples.run("send.py", bob.address, "1000000", status=1)
    assert "INSUFFICIENT_BALANCE" in printed[-1], printed


def run(examples, miner):
    """What a miner does, one thing after the other, is shown as it comes."""
    with examples.start("agent_run.py", "How much is 6 * 7?", "10000") as asking:
        agent = asking.stdout.readline().split()[1]
        same("pending", asking.stdout.readline().strip())
        tools = miner.client.chain.search(agent)["result"]["toolsWhitelist"]
        same(["date_diff", "date_parse", "math_eval"], tools)
        miner.send("AGENT_CLAIM", **miner.claim(agent))
        same(f"claimed {miner.address}", asking.stdout.readline().strip())
        step = {"agentRunId": agent, "stepIndex": 0, "outputTokens": 3}
        miner.send("AGENT_STEP", **step, outputHash=sha256_hex(b"42"))
        same("step 0: 3 tokens", asking.stdout.readline().strip())
        same(f"running {miner.address}", asking.stdout.readline().strip())
        amounts = {"minerReward": "3", "userRefund": "9897", "networkFee": "100"}
        end = {"totalTokensOut": 3, "status": "completed", "finalAnswerInline": "42"}
        miner.send("AGENT_FINISH", agentRunId=agent, **end, **amounts)
        rest = [f"completed {miner.address}", "42", "3 for the miner, 9897 back"]
        same(rest, ended(asking))


def watch(examples, alice, bob):
    with examples.start("watch_blocks.py") as watching:
        assert watching.stdout.readline().startswith("the chain is at block "), "no greeting"
        for amount in (1, 2):
            paid, printed = bob.pay(alice.address, amount), []
            sent = f"  TRANSFER from {bob.address} {paid['hash']}"
            # A block without transactions may come before.
            while sent not in printed:
                printed.append(watching.stdout.readline().rstrip())
                assert printed[-1] or watching.poll() is None, watching.stderr.read()
            same(f"block {paid['blockIndex']} {paid['blockHash']}", printed[-2])
    with examples.start("watch_blocks.py", "1") as watching:
        watching.stdout.readline()
        bob.pay(alice.address, 3)
        assert ended(watching)[0].startswith("block "), "no block"


def chat(examples, alice, bob):
    with examples.start("chat.py") as talking:
        topic = talking.stdout.readline().split()[1]
        turn = {"conversationId": topic, "role": "assistant"}
        talking.stdin.write("Bună ziua 😀\n\n")
        talking.stdin.flush()
        same(f"{alice.address[:8]} (user): Bună ziua 😀", talking.stdout.readline().strip())
        bob.send("CHAT_TURN", **turn, content="Salut!")
        same(f"{bob.address[:8]} (assistant): Salut!", talking.stdout.readline().strip())
        talking.stdin.write("Pa\n")
        printed = ended(talking)
        same([f"{alice.address[:8]} (user): Pa"], printed)
    # Who comes later sees all of it.
    again = examples.run("chat.py", topic)
    same(f"conversation {topic}", again[0])
    same(["Bună ziua 😀", "Salut!", "Pa"], [line.split(": ", 1)[1] for line in again[1:]])


def every_program_is_here(examples):
    """A program that is not run above, or is long, is no example."""
    # The agent needs a miner with a model: tests/it/payer/methods.rs runs it.
    programs = {"balance.py", "send.py", "agent_run.py", "watch_blocks.py", "chat.py"}
    programs.add("agent_loop.py")
    # Calls need members that answer: calls.py runs it.
    programs.add("agent_call.py")
    same(programs, {path.name for path in examples.folder.glob("*.py")})
    for path in examples.folder.glob("*.py"):
        text = path.read_text("utf-8")
        assert "\nusage: " in text and text.count("\n") < 60, path


def main(url, folder):
    client = connect(url)
    examples = Examples(url, folder)
    alice, bob = Account(client, 0), Account(client, 1)
    money(examples, alice, bob)
    run(examples, bob)
    watch(examples, alice, bob)
    chat(examples, alice, bob)
    every_program_is_here(examples)
    print(json.dumps({"examples": len(list(examples.folder.glob("*.py")))}))


main(*sys.argv[1:])
