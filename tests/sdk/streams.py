"""Both event streams through the public SDK, with texts that break careless writers.

usage: streams.py URL

The node must be a new `ombra dev`. Prints one line of JSON.
"""

import asyncio
import json
import sys

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
    alice, bob = Account(client, 0), Account(client, 1)
    heard, _ = await asyncio.gather(chain_events(client, alice), mempool_events(client, bob))
    print(json.dumps({"types": sorted(set(heard))}))


asyncio.run(main(sys.argv[1]))
