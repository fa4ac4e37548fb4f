"""The WebSocket through the public SDK: channels, filters, coming back.

usage: websocket.py URL

The node must be a new `ombra dev`. Prints `stop`, `kill` and `start`, reads `done` when the node
was stopped, killed or started again at the same address, and at last prints one line of JSON.
"""

import asyncio
import json
import resource
import signal
import sys
import time
from contextlib import asynccontextmanager

import websockets
from chain import NOBODY, PATIENCE_SECONDS, Account, ask_harness, connect, same
from ombrachain.crypto import sha256_hex
from ombrachain.stream import WsClient

# When the SDK comes back; it gives up if the node is not there by then.
COMES_BACK_SECONDS = 4.0
# A client that spins never lets go of its event loop, so it is stopped from outside.
CPU_SECONDS_MAX = 8
CHANNELS = ("blocks", "txs", "mempool", "agent", "chat")


class Ear:
    """A client of the SDK and everything that it heard."""

    def __init__(self, socket):
        self.socket, self.heard = socket, []

    async def listen(self):
        while True:
            try:
                async for message in self.socket.messages():
                    self.heard.append(message)
                return
            except OSError:
                # On a slow machine the node starts later than that; the program has to try again.
                await asyncio.sleep(0.1)

    def told(self, kind):
        return [message["data"] for message in self.heard if message["type"] == kind]

    async def until(self, what, check):
        """Waits until `check` of what was heard is something."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (answer := check(self)):
                # What goes wrong with the client is told at once.
                if self.listening.done():
                    self.listening.result()
                    raise AssertionError(f"the messages ended before {what}: {self.heard}")
                await asyncio.sleep(0.02)
        return answer

    async def subscribe(self, **params):
        count = self.count("subscribed")
        await self.socket.subscribe(params)
        await self.until("subscribed", lambda ear: ear.count("subscribed") > count)
        same({"type": "subscribed", "channel": params["channel"]}, self.acknowledged("subscribed"))

    async def unsubscribe(self, **params):
        await self.socket.unsubscribe(params)
        await self.until("unsubscribed", lambda ear: ear.count("unsubscribed") > 0)
        same(
            {"type": "unsubscribed", "channel": params["channel"]},
            self.acknowledged("unsubscribed"),
        )

    def count(self, kind):
        return sum(message["type"] == kind for message in self.heard)

    def acknowledged(self, kind):
        return [message for message in self.heard if message["type"] == kind][-1]


@asynccontextmanager
async def ear(url, **options):
    socket = WsClient(url, **options)
    await socket.connect()
    listener = Ear(socket)
    listener.listening = asyncio.create_task(listener.listen())
    try:
        yield listener
    finally:
        listener.listening.cancel()
        await socket.close()


async def answer(socket, message):
    """The next message after this one, of a socket without subscriptions."""
    await socket._ws.send(message)
    async with asyncio.timeout(PATIENCE_SECONDS):
        return json.loads(await socket._ws.recv())


def in_thread(work, *arguments, **options):
    return asyncio.to_thread(work, *arguments, **options)


def settle_a_run(alice, bob):
    """A conversation with one run, from its first turn to its end."""
    conversation = sha256_hex(alice.address.encode())
    turn = {"conversationId": conversation, "role": "user"}
    sent = [alice.send("CHAT_TURN", **turn, content="Cât e 6 * 7?\u2028😀")]
    request = alice.request("6 * 7?", 10_000, conversation)
    run = request["agentRunId"]
    sent.append(alice.send("AGENT_REQUEST", **request))
    sent.append(bob.send("AGENT_CLAIM", **bob.claim(run)))
    step = {"agentRunId": run, "stepIndex": 0, "outputTokens": 3, "outputHash": sha256_hex(b"42")}
    sent.append(bob.send("AGENT_STEP", **step))
    amounts = {"minerReward": "3", "userRefund": "9897", "networkFee": "100"}
    end = {"totalTokensOut": 3, "status": "completed", **amounts, "finalAnswerInline": "42"}
    sent.append(bob.send("AGENT_FINISH", agentRunId=run, **end))
    return conversation, run, sent


async def every_channel(url, client, alice, bob):
    bob_entry = await in_thread(
        bob.send, "MINER_REGISTER", name="bob", capabilities=[], modelInfo="m"
    )
    miner = client.miners.get_by_address(bob.address)["minerId"]
    async with ear(url) as everything, ear(url) as of_bob, ear(url) as of_nobody:
        for channel in CHANNELS:
            await everything.subscribe(channel=channel)
        await of_bob.subscribe(channel="txs", address=bob.address)
        await of_bob.subscribe(channel="mempool", address="ox" + bob.address)
        await of_bob.subscribe(channel="agent", minerId=miner)
        for channel in CHANNELS[1:]:
            await of_nobody.subscribe(channel=channel, address=NOBODY)
        conversation, run, sent = await in_thread(settle_a_run, alice, bob)
        hashes = [tx["hash"] for tx in sent]
        last = sent[-1]["blockIndex"]
        await everything.until(
            "the last block", lambda it: any(b["index"] == last for b in it.told("block"))
        )
        await everything.until(
            "the end of the run",
            lambda it: it.told("agent")[-1:] and it.told("agent")[-1]["event"] == "finished",
        )
        await everything.until("the transactions", lambda it: len(it.told("tx")) == len(sent))

        same(hashes, [data["hash"] for data in everything.told("tx")])
        same(
            [tx["blockIndex"] for tx in sent],
            [data["blockIndex"] for data in everything.told("tx")],
        )
        same(sent[0]["content"], everything.told("tx")[0]["tx"]["content"])
        blocks = everything.told("block")
        same(hashes, [tx for block in blocks for tx in block["transactions"]])
        for block in blocks:
            told = client.chain.get_block(block["index"])
            same([told["hash"], told["previousHash"]], [block["hash"], block["prevHash"]])
        same(
            ["created", "claimed", "step", "finished"],
            [data["event"] for data in everything.told("agent")],
        )
        same({run}, {data["agentRunId"] for data in everything.told("agent")})
        [turn] = everything.told("chat")
        same((conversation, sent[0]["content"]), (turn["conversationId"], turn["content"]))
        accepted = [data for data in everything.told("mempool") if data["event"] == "accepted"]
        same(hashes, [data["hash"] for data in accepted])

        by_bob = [tx["hash"] for tx in sent if tx["from"] == bob.address]
        await of_bob.until("bob's transactions", lambda it: len(it.told("tx")) == len(by_bob))
        same(by_bob, [data["hash"] for data in of_bob.told("tx")])
        same(
            by_bob, [data["hash"] for data in of_bob.told("mempool") if data["event"] == "accepted"]
        )
        same(["claimed", "step", "finished"], [data["event"] for data in of_bob.told("agent")])
        same({"subscribed"}, {message["type"] for message in of_nobody.heard})

        # The SDK forgets a subscription only by the very params that it was made with.
        await of_bob.unsubscribe(channel="txs", address=bob.address)
        again = await in_thread(bob.pay, alice.address, 1)
        await everything.until("the payment", lambda it: it.told("tx")[-1]["hash"] == again["hash"])
        same(by_bob, [data["hash"] for data in of_bob.told("tx")])
    assert bob_entry["blockIndex"] < last


async def pings_and_a_message_that_is_too_large(url):
    socket = WsClient(url)
    await socket.connect()
    same({"type": "pong"}, await answer(socket, '{"action":"ping"}'))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await (await socket._ws.ping(b"hello"))
    try:
        told = await answer(socket, json.dumps({"action": "ping", "more": "x" * 100_000}))
        raise AssertionError(f"a message of 100 kB was answered: {told}")
    except websockets.ConnectionClosed as closed:
        # The SDK does not come back after 1000 and 1001.
        code = closed.rcvd.code if closed.rcvd else None
        assert code not in (1000, 1001), code


async def comes_back(url, client, alice, bob, how):
    """After the node has gone and is there again, everything is heard as before."""
    async with ear(url, min_reconnect=COMES_BACK_SECONDS) as listener:
        for channel in CHANNELS:
            await listener.subscribe(channel=channel)
        await in_thread(alice.pay, bob.address, 1)
        await listener.until("the first payment", lambda it: it.told("tx") and it.told("block"))
        old, used = listener.socket._ws, time.process_time()
        await in_thread(ask_harness, how)
        await in_thread(ask_harness, "start")
        await listener.until(
            "the subscriptions", lambda it: it.count("subscribed") == 2 * len(CHANNELS)
        )
        used = time.process_time() - used
        code = old.close_code
        paid = await in_thread(alice.pay, bob.address, 2)
        await listener.until(
            "the block after", lambda it: it.told("block")[-1]["index"] >= paid["blockIndex"]
        )
        await listener.until(
            "the payment after", lambda it: it.told("tx")[-1]["hash"] == paid["hash"]
        )
        assert used < 1.0, f"the client computed for {used} s while the node was away"
    return code


def stop_spinning(*_):
    raise AssertionError(f"the client computed for {CPU_SECONDS_MAX} s")


async def main(url):
    signal.signal(signal.SIGXCPU, stop_spinning)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS_MAX, 2 * CPU_SECONDS_MAX))
    client = connect(url)
    alice, bob = Account(client, 0), Account(client, 1)
    await every_channel(url, client, alice, bob)
    await pings_and_a_message_that_is_too_large(url)
    closed = [await comes_back(url, client, alice, bob, how) for how in ("stop", "kill")]
    print(json.dumps({"closed": closed}))


asyncio.run(main(sys.argv[1]))
