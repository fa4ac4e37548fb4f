"""Both event streams through the public SDK, with texts that break careless writers.

usage: streams.py URL

The node must be a new `ombra dev`. Prints one line of JSON.
"""

import asyncio
import json
import sys

import httpx
from chain import NOWHERE, PATIENCE_SECONDS, Account, connect, included, same

# The first three end a line for the SDK's reader if they are not escaped.
CONTENT = (
    'a\u2028b\u2029c\u0085d\x0b\x0c\x1c\x1d\x1e\r\n\x00 😀 țară "\\ </script> data: x\n\nevent: y'
)


async def listen(subscription, is_enough):
    """Everything that is heard until `is_enough`."""
    heard = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with subscription as events:
            async for event in events:
                heard.append(event)
                if is_enough(heard):
                    return heard
    raise AssertionError(f"the stream ended after {heard}")


def types(heard):
    return [event["type"] for event in heard]


async def chain_events(client, account):
    """hello, a block with every transaction, pings."""
    height = client.chain.get_height()
    sent = []

    def is_enough(heard):
        # A text that is no JSON would be under `data`.
        assert set(types(heard)) <= {"hello", "block", "ping"} and "data" not in heard[-1], heard
        if not sent:
            turn = {"conversationId": NOWHERE, "role": "user", "content": CONTENT}
            sent.append(account.hand_in("CHAT_TURN", **turn))
        hashes = [tx["hash"] for event in heard for tx in event.get("transactions", [])]
        return sent[0]["hash"] in hashes and "ping" in types(heard)

    heard = await listen(client.subscribe_chain(), is_enough)
    hello = heard[0]
    same("hello", hello["type"])
    assert hello["height"] >= height["height"] and len(hello["latestBlockHash"]) == 64, hello
    blocks = [event for event in heard if event["type"] == "block"]
    [block] = [event for event in blocks if event["transactions"]]
    same(CONTENT, block["transactions"][0]["content"])
    same(sent, block["transactions"])
    needed = ("index", "hash", "timestamp", "proposer", "transactions")
    same([block[key] for key in needed], [block["block"][key] for key in needed])
    same(block["transactions"], block["block"]["txs"])
    told = client.chain.get_block(block["block"]["index"])
    same([told[key] for key in needed], [block[key] for key in needed])
    same("included", included(client, sent[0]["hash"])["status"])
    ping = next(event for event in heard if event["type"] == "ping")
    assert abs(ping["ts"] - sent[0]["timestamp"]) < PATIENCE_SECONDS * 1000, ping
    return types(heard)


async def every_block_once(client, account, url):
    """Who says what it saw last gets everything since; all of it is ASCII, and each line whole."""
    txs = [account.hand_in("TRANSFER", to=account.address, amount="1", fee="0") for _ in range(5)]
    last = included(client, txs[-1]["hash"])["blockIndex"]
    headers = {"Last-Event-ID": "0", "Accept": "text/event-stream"}
    seen, text = [], b""
    async with asyncio.timeout(PATIENCE_SECONDS), httpx.AsyncClient(timeout=None) as http:
        async with http.stream("GET", f"{url}/api/chain/events", headers=headers) as answer:
            same("text/event-stream", answer.headers["content-type"])
            async for piece in answer.aiter_raw():
                text += piece
                if f"id: {last}\n".encode() in text and text.endswith(b"\n\n"):
                    break
    assert text.isascii(), text
    for line in text.decode().split("\n"):
        if line.startswith("data: "):
            data = json.loads(line.removeprefix("data: "))
            assert "type" not in data, data
            seen.extend([data["index"]] if "index" in data else [])
    same(list(range(1, last + 1)), seen[:last])


async def mempool_events(client, account):
    """hello, and how many wait."""
    account.nonce += 1
    account.hand_in("TRANSFER", to=account.address, amount="1", fee="0")
    has_snapshot = lambda heard: "snapshot" in types(heard)  # noqa: E731
    hello, snapshot = await listen(client.subscribe_mempool(), has_snapshot)
    same({"type": "hello", "total": 1}, hello)
    same(("snapshot", 1), (snapshot["type"], snapshot["total"]))
    assert snapshot["ts"] > 0, snapshot


async def main(url):
    client = connect(url)
    alice, bob, carol = (Account(client, index) for index in range(3))
    heard, _ = await asyncio.gather(chain_events(client, alice), mempool_events(client, bob))
    await every_block_once(client, carol, url)
    print(json.dumps({"types": sorted(set(heard))}))


asyncio.run(main(sys.argv[1]))
