"""Asks for an agent run and follows it to its end: who took it, each step, the answer, the costs.

usage: agent_run.py PROMPT [MAX_FEE]     MAX_FEE in micro-OMBRA, 100000 if not given

OMBRA_MNEMONIC has the words of the wallet that pays, OMBRA_URL is the node.
"""

import asyncio
import os
import sys
import time

from agent_methods.protection import DEFAULT_TOOLS, protection
from ombrachain import OmbraClient, Wallet
from ombrachain.crypto import sha256_hex
from ombrachain.tx import _sign_and_finalize

client = OmbraClient(url := os.environ.get("OMBRA_URL", "http://127.0.0.1:8777"))
wallet = Wallet.from_mnemonic(os.environ["OMBRA_MNEMONIC"])


def request(prompt, max_fee):
    """The SDK has no builder, so its own function signs (docs/protocol.md section 5.2)."""
    address, now = wallet.address, int(time.time() * 1000)
    nonce = client.chain.get_account(address)["nonce"]
    # The first 256 UTF-16 code units, where a cut pair becomes U+FFFD.
    begin = prompt.encode("utf-16-le")[:512].decode("utf-16-le", "replace")
    run = sha256_hex(f"{address}{nonce}{begin}".encode())
    topic = sha256_hex(f"{address}|{now}|".encode())
    what = {"agentRunId": run, "conversationId": topic, "prompt": prompt, "toolsWhitelist": DEFAULT_TOOLS}
    most = {"maxFee": str(int(max_fee)), "maxSteps": 20, "nonce": nonce, "timestamp": now}
    tx = {"type": "AGENT_REQUEST", "from": address, **what, **most, **protection(url, max_fee)}
    client.chain.submit_tx(_sign_and_finalize(tx, wallet.private_key))
    return run


async def main(prompt, max_fee="100000"):
    socket, steps, status = client.websocket(), 0, None
    run = request(prompt, max_fee)
    print("run", run, flush=True)
    await socket.subscribe({"channel": "agent", "address": wallet.address})
    # Each message, also that of a new connection, is a reason to look at the record.
    async for _ in socket.messages():
        if not (told := client.chain.search(run)["result"]):
            continue
        for step in client._request("GET", f"/api/agent/v6/run/{run}/steps")["steps"][steps:]:
            steps += 1
            print(f"step {step['stepIndex']}: {step['outputTokens']} tokens", flush=True)
        if told["status"] != status:
            status = told["status"]
            print(status, told.get("minerAddress", ""), flush=True)
        if status not in ("pending", "claimed", "running"):
            break
    await socket.close()
    print(told.get("finalAnswerInline", "(no answer in the record)"))
    print(told["minerReward"], "for the miner,", told["userRefund"], "back")


asyncio.run(main(*sys.argv[1:3]))
