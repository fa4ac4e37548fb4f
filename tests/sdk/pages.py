"""A long chain read whole, page by page, as the public SDK reads it.

usage: pages.py URL

The node makes empty blocks too, quickly, and puts few transactions on a page. Prints one line of
JSON.
"""

import json
import sys

from chain import NOWHERE, Account, connect, same, wait_for

# More than one answer has, also without those that hold the turns.
BLOCKS = 600
FULL_BLOCKS_MAX = 500
LISTED_MAX = 100
TURNS = 30


def fill(client):
    """A chain of so many blocks, some of them with long texts; the hashes in chain order."""
    turn = {"conversationId": NOWHERE, "role": "user", "content": "x" * 16_000}
    accounts = [Account(client, index) for index in range(3)]
    sent = [account.send("CHAT_TURN", **turn) for _ in range(TURNS // 3) for account in accounts]
    # However slowly the turns came in: after them more blocks than a page has.
    enough = max(BLOCKS, client.chain.get_height()["height"] + FULL_BLOCKS_MAX + TURNS)
    wait_for("enough blocks", lambda: client.chain.get_height()["height"] >= enough)
    return [tx["hash"] for tx in sent]


def whole(client, first=None, last=None):
    """Every page from block `first` on, as `nextFrom` leads to them; up to block `last`, or as far
    as the chain goes."""
    pages, start = [], first
    while True:
        params = {"from": start, "to": last}
        params = {name: value for name, value in params.items() if value is not None}
        page = client._request("GET", "/api/chain/blocks-full", params=params)
        assert 0 < len(page["blocks"]) <= FULL_BLOCKS_MAX, page
        pages.append(page["blocks"])
        if page["nextFrom"] is None:
            return pages
        same(page["blocks"][-1]["index"] + 1, page["nextFrom"])
        start = page["nextFrom"]


def blocks_in(pages):
    return [block for page in pages for block in page]


def indexes(blocks):
    return [block["index"] for block in blocks]


def check_whole(client, hashes):
    height = client.chain.get_height()["height"]
    pages = whole(client)
    blocks = blocks_in(pages)
    # The chain grows meanwhile.
    assert len(blocks) >= height, (len(blocks), height)
    same(list(range(1, len(blocks) + 1)), indexes(blocks))
    same(hashes, [tx["hash"] for block in blocks for tx in block["transactions"]])
    parents = [block["previousHash"] for block in blocks]
    same([client.chain.get_block(0)["hash"], *(it["hash"] for it in blocks[:-1])], parents)
    for block in (blocks[0], blocks[len(blocks) // 2], blocks[-1]):
        same(block, client.chain.get_block(block["index"]))
    # Both reasons for which a page ends: its blocks are many, or their texts are long.
    sizes = [len(page) for page in pages[:-1]]
    assert any(size == FULL_BLOCKS_MAX for size in sizes), sizes
    assert any(size < FULL_BLOCKS_MAX for size in sizes), sizes
    return blocks


def check_part(client, blocks):
    """From one block to another, and nothing beyond."""
    part = blocks_in(whole(client, 2, 2 + TURNS))
    same(blocks[1 : 2 + TURNS], part)
    [[last]] = whole(client, BLOCKS, BLOCKS)
    same(blocks[BLOCKS - 1], last)


def check_list(client, blocks):
    """The list that counts from the newest block, over a chain that grows meanwhile."""
    listed, offset = {}, 0
    while offset < client.chain.get_height()["height"]:
        page = client.chain.get_blocks(limit=LISTED_MAX, offset=offset)["blocks"]
        listed |= {block["index"]: block["hash"] for block in page}
        # Blocks that came since move everything on; a page that overlaps misses none.
        offset += LISTED_MAX // 2
    missing = [block["index"] for block in blocks if listed.get(block["index"]) != block["hash"]]
    same([], missing)


def main(url):
    client = connect(url)
    hashes = fill(client)
    blocks = check_whole(client, hashes)
    check_part(client, blocks)
    check_list(client, blocks)
    print(json.dumps({"turns": len(hashes)}))


main(sys.argv[1])
