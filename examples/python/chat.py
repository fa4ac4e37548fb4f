"""Shows a conversation with everything that is said in it, and says what is typed.

usage: chat.py [CONVERSATION]     without CONVERSATION: a new one; ends with Ctrl-D

OMBRA_MNEMONIC has the words of the wallet that pays for turns, OMBRA_URL is the node.
"""

import asyncio
import os
import sys
import time

from ombrachain import OmbraClient, Wallet
from ombrachain.crypto import sha256_hex
from ombrachain.tx import _sign_and_finalize

client = OmbraClient(os.environ.get("OMBRA_URL", "http://127.0.0.1:8777"))
wallet = Wallet.from_mnemonic(os.environ["OMBRA_MNEMONIC"])
shown = set()


def show(conversation, page=None):
    """The SDK has no method for conversations, so its own function asks (docs/rest.md)."""
    told = client._request("GET", f"/api/agent/v6/conversation/{conversation}", params=page)
    for turn in [turn for turn in told["turns"] if turn["hash"] not in shown]:
        shown.add(turn["hash"])
        print(f"{turn['from'][:8]} ({turn['role']}): {turn['content']}", flush=True)
    if told["nextCursor"]:
        show(conversation, {"cursor": told["nextCursor"]})


def say(conversation, content):
    """Nor has it a builder, so its own function signs (docs/protocol.md section 5.1)."""
    nonce, now = client.chain.get_account(wallet.address)["nonce"], int(time.time() * 1000)
    said = {"conversationId": conversation, "role": "user", "content": content}
    turn = {"type": "CHAT_TURN", "from": wallet.address, **said, "nonce": nonce, "timestamp": now}
    sent = client.chain.submit_tx(_sign_and_finalize(turn, wallet.private_key))
    while client.chain.get_tx(sent["hash"])["txStatus"] == "pending":
        time.sleep(0.1)


async def listen(conversation):
    socket = client.websocket()
    await socket.subscribe({"channel": "chat"})
    async for _ in socket.messages():
        show(conversation)


async def main(conversation):
    print("conversation", conversation, flush=True)
    listening = asyncio.create_task(listen(conversation))
    show(conversation)
    while (line := await asyncio.to_thread(sys.stdin.readline)) and not listening.done():
        if line.strip():
            say(conversation, line.strip())
            show(conversation)


asyncio.run(main(*sys.argv[1:2] or [sha256_hex(f"{wallet.address}|{time.time()}|".encode())]))
