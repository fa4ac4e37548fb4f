"""Prints every block as it is made, and comes back when the node was away.

usage: watch_blocks.py [COUNT]     ends after so many blocks, otherwise with Ctrl-C

OMBRA_URL is the node (http://127.0.0.1:8777).
"""

import asyncio
import itertools
import os
import sys

import httpx
from ombrachain import OmbraClient, OmbraNetworkError


async def blocks(client):
    """Every block from now on, once and in order."""
    last = None
    while True:
        try:
            async with client.subscribe_chain() as events:
                async for event in events:
                    if event["type"] == "hello" and last is not None:
                        # What was made while nobody listened.
                        for index in range(last + 1, event["height"] + 1):
                            yield client.chain.get_block(index)
                        last = max(last, event["height"])
                    elif event["type"] == "hello":
                        last = event["height"]
                        print(f"the chain is at block {last}", flush=True)
                    elif event["type"] == "block" and event["block"]["index"] > last:
                        last = event["block"]["index"]
                        yield event["block"]
        except (httpx.HTTPError, OmbraNetworkError) as error:
            print(f"the stream was lost: {error}", file=sys.stderr)
        await asyncio.sleep(1)


async def main(count=None):
    client = OmbraClient(os.environ.get("OMBRA_URL", "http://127.0.0.1:8777"))
    seen = itertools.count(1)
    async for block in blocks(client):
        print(f"block {block['index']} {block['hash']}", flush=True)
        for tx in block["transactions"]:
            print(f"  {tx['type']} from {tx['from']} {tx['hash']}", flush=True)
        if count is not None and next(seen) >= int(count):
            break


try:
    asyncio.run(main(*sys.argv[1:2]))
except KeyboardInterrupt:
    pass
