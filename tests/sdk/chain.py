"""What the scripts beside it share: accounts that sign with the public SDK, and waiting."""

import faulthandler
import sys
import time

from ombrachain import OmbraApiError, OmbraClient, Wallet
from ombrachain.crypto import sha256_hex
from ombrachain.tx import _sign_and_finalize

DEVELOPMENT = "test " * 11 + "junk"
PATIENCE_SECONDS = 60
NOBODY = "ab" * 20
NOWHERE = "ab" * 32

# Whatever hangs says where, and ends.
faulthandler.dump_traceback_later(4 * PATIENCE_SECONDS, exit=True)


class Account:
    """A development account; each of its transactions has the next nonce."""

    def __init__(self, client, index):
        self.client = client
        self.wallet = Wallet.from_mnemonic(DEVELOPMENT, index)
        self.address = self.wallet.address
        self.nonce = client.chain.get_account(self.address)["nonce"]

    def draft(self, kind, **fields):
        """A signed transaction whose nonce stays the next one."""
        base = {"type": kind, "from": self.address}
        last = {"nonce": self.nonce, "timestamp": int(time.time() * 1000)}
        return _sign_and_finalize({**base, **last, **fields}, self.wallet.private_key)

    def sign(self, kind, **fields):
        tx = self.draft(kind, **fields)
        self.nonce += 1
        return tx

    def hand_in(self, kind, **fields):
        """Signs and submits; answers the signed transaction."""
        tx = self.sign(kind, **fields)
        sent = self.client.chain.submit_tx(tx)
        assert sent == {"ok": True, "hash": tx["hash"]}, sent
        return tx

    def send(self, kind, **fields):
        """Signs, submits and waits for the block; answers the transaction as the node tells it."""
        return included(self.client, self.hand_in(kind, **fields)["hash"])

    def pay(self, to, amount, fee=0):
        return self.send("TRANSFER", to=to, amount=str(amount), fee=str(fee))

    def request(self, prompt, max_fee, conversation=NOWHERE, max_steps=5):
        """The fields of an AGENT_REQUEST with the next nonce."""
        return {
            "agentRunId": sha256_hex(f"{self.address}{self.nonce}{prompt}".encode()),
            "conversationId": conversation,
            "prompt": prompt,
            "toolsWhitelist": [],
            "maxFee": str(max_fee),
            "maxSteps": max_steps,
        }

    def claim(self, run):
        """The fields of an AGENT_CLAIM."""
        whose = {"minerAddress": self.address, "modelInfo": "a person", "hardwareTier": "laptop"}
        return {"agentRunId": run, **whose}


def wait_for(what, check):
    """What `check` answers, as soon as that is something."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        answer = check()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"waited {PATIENCE_SECONDS} s for {what}"
        time.sleep(0.02)


def included(client, tx_hash):
    """The transaction as the node tells it, once it is in a block."""

    def look():
        tx = client.chain.get_tx(tx_hash)
        assert tx["txStatus"] != "dropped", tx
        return tx if tx["blockIndex"] is not None else None

    return wait_for(f"the block of {tx_hash}", look)


def refused(status, code, call, *arguments):
    """Expects an OmbraApiError with this status and code; answers its body."""
    try:
        answer = call(*arguments)
    except OmbraApiError as error:
        told = (error.status, error.body.get("code") if isinstance(error.body, dict) else None)
        assert told == (status, code), f"{told} instead of {(status, code)}: {error.body}"
        assert error.body["error"], error.body
        return error.body
    raise AssertionError(f"{arguments} was answered instead of {status} {code}: {answer}")


def same(expected, found):
    assert expected == found, f"expected {expected}, found {found}"


def connect(url, **options):
    return OmbraClient(url, **options)


def answers(client):
    """A list to which every HTTP answer that the client gets from now on is added."""
    seen = []
    client._http.event_hooks["response"].append(seen.append)
    return seen


def ask_harness(what):
    """Has the test that started this script `stop`, `kill` or `start` the node."""
    print(what, flush=True)
    same("done", sys.stdin.readline().strip())
