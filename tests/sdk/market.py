"""An agent, a committee of three that is drawn for a call, and what they say: what an explorer has to show
of the market."""

import hashlib
import json

from chain import Account, wait_for
from ombrachain.crypto import sha256_hex

MANIFEST = "ee" * 32
SALT = "5a" * 32
SELECTOR = "26121ff0"  # f()
PRICES = {"perCall": "1000", "promptPerM": "0", "completionPerM": "100000", "fuelPerG": "0"}
USED = {"inputTokens": 12, "outputTokens": 3, "fuel": 0}


def metadata(version):
    model = {"kind": "model", "model": MANIFEST, "basePrompt": "", "tools": ["math_eval"]}
    return json.dumps(
        {
            "name": "judge",
            "description": "Says whether a review is good.",
            "version": version,
            "tags": ["text"],
            "container_image": f"ombra-model:{MANIFEST}",
            "executor": {**model, "maxIterations": 1, "maxOutputTokens": 9},
            "abi": [{"type": "function", "name": "f", "inputs": [], "outputs": []}],
        }
    )


class Market:
    """Account 4 owns the agent, account 3 asks, and those after them offer to work."""

    def __init__(self, client, get):
        self.get = get
        self.chain_id = get("/api/chain/genesis").json()["chainId"]
        self.requester, self.owner, *self.miners = (Account(client, n) for n in range(3, 10))
        self.agent = sha256_hex(f"agent|{self.owner.address}|judge".encode())

    def send(self, account, kind, **fields):
        return account.send(kind, chainId=self.chain_id, **fields)

    def open(self):
        for version in ("1.0.0", "1.1.0"):
            self.send(
                self.owner, "AGENT_REGISTER", agentId=self.agent, metadata=metadata(version)
            )
        for miner in self.miners:
            self.send(miner, "MINER_BOND", amount="20000000")
            offer = {"executor": f"model-1:{MANIFEST}", "capacity": 9, **PRICES}
            self.send(miner, "MINER_OFFER", **offer)
        gone = {"executor": "wasm-1", "capacity": 1, **PRICES}
        self.send(self.miners[0], "MINER_OFFER", **gone)

    def call(self, size, **more):
        """Asks; answers the call's id."""
        asks = self.requester
        call = sha256_hex(f"call|{self.chain_id}|{asks.address}|{asks.nonce}".encode())
        limits = {"inputTokens": 100, "outputTokens": 100, "fuel": 0, "resultBytes": 64}
        what = {"callId": call, "agentId": self.agent, "agentVersion": "1.1.0"}
        terms = {"prices": PRICES, "limits": limits, "maxFee": "50000", "timeoutMs": 20_000}
        members = {"consensus": "majority", "committeeSize": size}
        asked = {**what, "payload": "0x" + SELECTOR, **members, **terms, **more}
        self.send(asks, "AGENT_CALL", **asked)
        return call

    def members(self, call, number):
        """Those who were drawn for a round."""

        def drawn():
            rounds = self.shown(call)["rounds"]
            return rounds[number]["members"] if len(rounds) > number else None

        found = wait_for("the election", drawn)
        by_address = {miner.address: miner for miner in self.miners}
        return [by_address[member["address"]] for member in found]

    def shown(self, call):
        answer = self.get(f"/api/calls/{call}")
        answer.raise_for_status()
        return answer.json()

    def answer(self, call, number, says):
        """The members of a round commit and reveal: so many results."""
        said = list(zip(self.members(call, number), says, strict=True))
        for member, result in said:
            parts = [call, number, member.address, SALT, "success", digest(result)]
            parts += [USED["inputTokens"], USED["outputTokens"], USED["fuel"], SALT]
            hidden = sha256_hex("|".join(["commit", *map(str, parts)]).encode())
            self.send(member, "CALL_COMMIT", callId=call, round=number, commitment=hidden)
        for member, result in said:
            opens = {"callId": call, "round": number, "salt": SALT, "outcome": "success"}
            answer = {"result": "0x" + result.hex(), **USED, "receiptHash": SALT}
            self.send(member, "CALL_REVEAL", **opens, **answer)

    def until(self, call, is_there):
        wait_for("the call", lambda: is_there(self.shown(call)))


def digest(result):
    return hashlib.sha256(result).hexdigest()


def play(client, get):
    """With `get`, which asks the node for a path: a call that is answered, one whose members are drawn and wait, one that is appealed; answers the ids
    of the agent and of the calls."""
    market = Market(client, get)
    market.open()
    answered = market.call(3)
    market.answer(answered, 0, [b"yes", b"yes", b"no"])
    market.until(answered, lambda call: call["settled"])
    doubted = market.call(1, appealable=True)
    market.answer(doubted, 0, [b"no"])
    market.until(doubted, lambda call: call["status"] == "success")
    doubter = Account(client, 2)
    market.send(doubter, "CALL_APPEAL", callId=doubted)
    market.answer(doubted, 1, [b"yes"] * 3)
    market.until(doubted, lambda call: call["settled"])
    waiting = market.call(3)
    market.members(waiting, 0)
    market.send(market.owner, "AGENT_RETIRE", agentId=market.agent)
    return market.agent, [answered, doubted, waiting]
