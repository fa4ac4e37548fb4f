"""Clients that stop reading: what the public SDK is told then, and that nobody else notices.

usage: slow.py URL PID

The node lets a client fall 5 blocks behind, waits for one for a long time, and has this process id.
Prints one line of JSON.
"""

import asyncio
import json
import socket
import sys
from unittest import mock
from urllib.parse import urlsplit

from chain import NOWHERE, PATIENCE_SECONDS, Account, connect, same
from ombrachain.stream import WsClient

LAG_BLOCKS_MAX = 5
# Together far more than the system buffers for a connection.
ROUNDS, TURNS = 60, 10
# Each of these characters takes twice as much in ASCII.
CONTENT = "\u2028" * 5_000
STUCK = 24
# So little room for what comes in that the node notices soon.
RECEIVE_BYTES = 16 * 1024


def stuck(url):
    """A stream that is opened and never read."""
    host = urlsplit(url)
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
    opened.connect((host.hostname, host.port))
    opened.sendall(f"GET /api/chain/events HTTP/1.1\r\nhost: {host.netloc}\r\n\r\n".encode())
    assert opened.recv(12) == b"HTTP/1.1 200"
    return opened


def memory_kb(pid):
    """What the process has in memory."""
    with open(f"/proc/{pid}/status") as status:
        [line] = [line for line in status if line.startswith("VmRSS:")]
    return int(line.split()[1])


def with_little_room():
    """While it lasts, new connections have little room for what comes in: by itself the system gives them as
    much as its settings allow, which may be more than all that comes."""
    connect_plainly = socket.socket.connect

    def connect_small(self, address):
        self.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        return connect_plainly(self, address)

    return mock.patch.object(socket.socket, "connect", connect_small)


class Quick:
    """A client that reads all the time, and the blocks that it heard of."""

    def __init__(self, subscription):
        self.subscription, self.blocks = subscription, []

    async def listen(self):
        async for event in self.subscription:
            assert event["type"] != "lagged", event
            if event["type"] == "block":
                self.blocks.append((event["index"], [tx["hash"] for tx in event["transactions"]]))

    async def until(self, tx_hash):
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not any(tx_hash in hashes for _, hashes in self.blocks[-LAG_BLOCKS_MAX:]):
                if self.listening.done():
                    self.listening.result()
                    raise AssertionError(f"the stream ended after {self.blocks[-1:]}")
                await asyncio.sleep(0.01)


def say(account):
    """Turns; answers the hash of the last."""
    turn = {"conversationId": NOWHERE, "role": "user", "content": CONTENT}
    return [account.hand_in("CHAT_TURN", **turn) for _ in range(TURNS)][-1]["hash"]


async def slow_stream(events, tip):
    """Goes on at the tip whenever it has fallen behind, and is told how many blocks it lost."""
    last, lost, expected = None, 0, None
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for event in events:
            if event["type"] == "lagged":
                same(None, expected)
                same(last + event["lagged"] + 1, event["height"])
                lost, expected = lost + event["lagged"], event["height"]
            elif event["type"] == "block":
                if last is not None:
                    same(expected or last + 1, event["index"])
                last, expected = event["index"], None
                if last >= tip:
                    break
    assert lost > LAG_BLOCKS_MAX, (lost, tip)


async def slow_socket(socket, account):
    """Is closed with a code after which the SDK comes back by itself, and hears again."""
    old = socket._ws
    seen, paid = [], None
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for message in socket.messages():
            seen.append(message)
            same(False, message["type"] in ("error", "lagged"))
            if message["type"] == "subscribed" and socket._ws is not old and not paid:
                paid = await asyncio.to_thread(account.pay, NOWHERE[:40], 1)
            if paid and message["type"] == "tx" and message["data"]["hash"] == paid["hash"]:
                break
    told = [message["data"]["hash"] for message in seen if message["type"] == "tx"]
    assert 0 < len(told) < ROUNDS * TURNS, len(told)
    return old.close_code


async def main(url, pid):
    client = connect(url)
    account = Account(client, 0)
    slow_ws, slow_stream_of_blocks = WsClient(url), client.subscribe_chain()
    with with_little_room():
        await slow_ws.connect()
        slow = await slow_stream_of_blocks.__aenter__()
    await slow_ws.subscribe({"channel": "txs"})
    await slow_ws.subscribe({"channel": "chat"})
    connections = [stuck(url) for _ in range(STUCK)]
    async with client.subscribe_chain() as subscription:
        quick = Quick(subscription)
        quick.listening = asyncio.create_task(quick.listen())
        for turn in range(ROUNDS):
            await quick.until(await asyncio.to_thread(say, account))
            if turn == ROUNDS // 2:
                # Every connection has been full for long.
                before = memory_kb(pid)
        grown_kb = memory_kb(pid) - before
        events_kb = STUCK * TURNS * (ROUNDS // 2) * len(CONTENT) * 6 * 3 // 1024
        # Kept for each, it would be nearly all of it.
        assert grown_kb < events_kb // 8, f"{grown_kb} KB more, {events_kb} KB of events unread"
        indexes = [index for index, _ in quick.blocks]
        same(list(range(indexes[0], indexes[0] + len(indexes))), indexes)
        await slow_stream(slow, indexes[-1])
        closed = await slow_socket(slow_ws, account)
        await quick.until(client.chain.get_account(account.address)["recentTxs"][0]["hash"])
        quick.listening.cancel()
    await slow_stream_of_blocks.__aexit__(None, None, None)
    await slow_ws.close()
    for connection in connections:
        connection.close()
    print(json.dumps({"closed": closed}))


asyncio.run(main(*sys.argv[1:]))
