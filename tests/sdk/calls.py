"""The package of examples/python for calls of agents: against the golden values, and on a chain
with the agent market, where scripted members answer.

usage: calls.py REPOSITORY [URL]

The node must be a new `ombra dev --v8 0`. Without one only what needs neither node nor packages is
looked at. Prints one line of JSON.
"""

import contextlib
import copy
import json
import os
import subprocess
import sys
import threading
import time
from hashlib import sha256
from pathlib import Path
from unittest import mock

ROOT = Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "examples/python"))

import agent_calls as calls  # noqa: E402
from agent_methods import FieldError  # noqa: E402

DEVELOPMENT = "test " * 11 + "junk"
PATIENCE_SECONDS = 60
MANIFEST = "ee" * 32
JUDGE = {
    "type": "function",
    "name": "judge",
    "inputs": [{"name": "review", "type": "string"}, {"name": "stars", "type": "uint8"}],
    "outputs": [{"name": "verdict", "type": "string"}, {"name": "good", "type": "bool"}],
}
METHOD = calls.Method(JUDGE)
GOOD, BAD = {"verdict": "splendid 😀", "good": True}, {"verdict": "dreadful", "good": False}
PRICES = {"perCall": "1000", "promptPerM": "0", "completionPerM": "100000", "fuelPerG": "0"}


def same(expected, got):
    assert expected == got, f"expected {expected!r}, got {got!r}"


def vectors(path):
    return json.loads((ROOT / path).read_text("utf-8"))


def refused(error, what, *arguments):
    try:
        taken = what(*arguments)
    except error as told:
        return told
    raise AssertionError(f"taken: {arguments!r} as {taken!r}")


def golden():
    """Payloads, results, elections and prices are those of others, byte for byte."""
    coded = vectors("types/fixtures/abi.json")
    for vector in coded:
        method, values = calls.Method(vector["method"]), vector["values"]
        same((vector["signature"], vector["selector"]), (method.signature, method.selector))
        payload, result = vector["selector"] + vector["encoded"], "0x" + vector["encoded"]
        same((payload, result), (method.encode(values), method.encode_result(values)))
        same((values, values), (method.decode(payload), method.decode_result(result)))
        for wrong in (result + "00", result + "00" * 32, "0x1", None):
            same("result", refused(FieldError, method.decode_result, wrong).field)
    elections = vectors("state/src/market/election/vectors.json")["elections"]
    for it in elections:
        candidates = [(address, weight, False) for address, weight in reversed(it["candidates"])]
        record = {**it, "members": [{"address": address} for address in it["members"]]}
        told = (it["callId"], it["round"], record)
        same(None, calls.verify_election(told, it["randomness"], candidates))
        full = [(candidates[0][0], candidates[0][1], True), *candidates[1:]]
        assert "candidatesHash" in calls.verify_election(told, it["randomness"], full)
        record["members"] = record["members"][1:]
        assert "were drawn" in calls.verify_election(told, it["randomness"], candidates)
    market = vectors("types/market_vectors.json")
    for it in market["prices"]:
        same(it["price"], str(calls.price_of(it["prices"], it["usage"])))
    for it in market["callIds"]:
        same(it["callId"], calls.compute_call_id(it["chainId"], it["from"], it["nonce"]))
    for it in market["commitments"]:
        by = (it["callId"], it["round"], it["member"])
        same(it["commitment"], calls.compute_commitment(by, it["salt"], it))
        same(it["resultHash"], calls.compute_result_hash(it["result"]))
    return {"coded": len(coded), "elections": len(elections)}


def wrong_arguments():
    """An argument that a method does not take is named."""
    for given, field in (
        (["x", 256], "args.stars"),
        ({"review": "x", "stars": True}, "args.stars"),
        ({"review": "x"}, "args.stars"),
        ({"review": "x", "stars": 1, "more": 1}, "args.more"),
        (["x"], "args"),
        ({"review": "\ud800", "stars": 1}, "args.review"),
        (["x" * 16_384, 1], "payload"),
    ):
        same(field, refused(FieldError, METHOD.encode, given).field)
    for kind in ("uint7", "bytes33", "string[0]", "uint8[][][][][]", "tuple", "uint08", "float"):
        entry = {**JUDGE, "inputs": [{"name": "", "type": kind}]}
        refused(FieldError, calls.Method, entry)


def open_market(people):
    """An agent of the first, and offers of all but the second; answers the agent's id."""
    model = {"kind": "model", "model": MANIFEST, "basePrompt": "", "tools": []}
    metadata = {
        "name": "judge",
        "description": "Says whether a review is good.",
        "version": "1.0.0",
        "container_image": f"ombra-model:{MANIFEST}",
        "executor": {**model, "maxIterations": 1, "maxOutputTokens": 9},
        "abi": [JUDGE],
    }
    agent_id = sha256(f"agent|{people[0].wallet.address[-40:]}|judge".encode()).hexdigest()
    people[0].send("AGENT_REGISTER", agentId=agent_id, metadata=json.dumps(metadata))
    for miner in people[2:]:
        miner.send("MINER_BOND", amount="20000000")
        miner.send("MINER_OFFER", executor=f"model-1:{MANIFEST}", capacity=9, **PRICES)
    return agent_id


def answer(people, call_id, says):
    """Three members commit and reveal what they are told to say."""
    by_address = {it.wallet.address[-40:]: it for it in people}
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            rounds = people[0].rpc("ombra_getCall", call_id)["rounds"]
        except RuntimeError:
            rounds = []
        if rounds:
            break
        assert time.monotonic() < deadline, "waited for the election"
        time.sleep(0.02)
    salt, place = "5a" * 32, {"callId": call_id, "round": 0}
    speeches = []
    for member, values in zip(rounds[0]["members"], says):
        result = METHOD.encode_result(values)
        said = {"outcome": "success", "inputTokens": 12, "outputTokens": 3, "fuel": 0}
        said["receiptHash"] = "77" * 32
        whole = {**said, "resultHash": calls.compute_result_hash(result)}
        hidden = calls.compute_commitment((call_id, 0, member["address"]), salt, whole)
        key = by_address[member["address"]]
        key.send("CALL_COMMIT", **place, commitment=hidden)
        speeches.append((key, {**place, "salt": salt, "result": result, **said}))
    for key, speech in speeches:
        key.send("CALL_REVEAL", **speech)


def called(url):
    """A call from the question to the settlement; whatever the node changes of it is told."""
    from agent_calls.ask import Caller
    from ombrachain import Wallet

    people = [Caller(Wallet.from_mnemonic(DEVELOPMENT, index), url) for index in range(5)]
    agent_id, caller = open_market(people), people[1]
    call_id = calls.compute_call_id(caller.chain_id, caller.wallet.address, caller.nonce())
    members = threading.Thread(target=answer, args=(people, call_id, (GOOD, BAD, GOOD)))
    members.start()
    arguments = {"review": "What a book 😀", "stars": 5}
    status, values, call = caller.call_agent(agent_id, "judge", arguments, until="settled")
    members.join()
    same(("success", GOOD, call_id), (status, values, call["callId"]))
    same((2, "2000"), (call["agreeing"], call["penalties"]))
    same({**arguments, "stars": "5"}, METHOD.decode(call["payload"]))
    changes = {
        "budget": lambda it: it.update(budget="1"),
        "payloadHash": lambda it: it.update(payloadHash="00" * 32),
        "the sum of the bill": lambda it: it.update(refund="0"),
        "status": lambda it: it.update(status="failed"),
        "answer.resultHash": lambda it: it["answer"].update(result="0x00"),
        "rounds[0].agreeing": lambda it: it["rounds"][0].update(agreeing=3),
        "rounds[0].group": lambda it: it["rounds"][0].update(size=5),
        "rounds[0].decidedAt": lambda it: it["rounds"][0].pop("decidedAt"),
    }
    for field, change in changes.items():
        changed = copy.deepcopy(call)
        change(changed)
        same(field, refused(calls.CallUnfit, calls.check_call, changed).field)
    changed = copy.deepcopy(call)
    changed["rounds"][0]["members"][0]["reveal"]["salt"] = "00" * 32
    assert "commitment" in refused(calls.CallUnfit, calls.check_call, changed).field
    too_many = {"committeeSize": 15}
    assert "miners" in str(
        refused(RuntimeError, lambda: caller.prepare(agent_id, "judge", ["x", 1], **too_many))
    )
    done = {"called": 1 + program(people, agent_id), "changes": len(changes) + 1}
    return {**done, "refunded": refunded(people, agent_id)}


def program(people, agent_id):
    """What the program prints that calls an agent with the first account."""
    call_id = calls.compute_call_id(people[0].chain_id, people[0].wallet.address, people[0].nonce())
    members = threading.Thread(target=answer, args=(people, call_id, (GOOD, GOOD, GOOD)))
    members.start()
    command = [sys.executable, str(ROOT / "examples/python/agent_call.py")]
    command += [agent_id, "judge", json.dumps(["What a book", 5])]
    told = {"OMBRA_URL": people[0].url, "OMBRA_MNEMONIC": DEVELOPMENT, "PYTHONUTF8": "1"}
    pipes = {"capture_output": True, "text": True, "encoding": "utf-8"}
    ended = subprocess.run(command, env={**os.environ, **told}, timeout=PATIENCE_SECONDS, **pipes)
    members.join()
    same(0, ended.returncode)
    printed = ended.stdout.splitlines()
    same([f"call {call_id}", f"success {json.dumps(GOOD, ensure_ascii=False)}"], printed[:2])
    same([True] * 3, [" agrees " in line for line in printed[2:5]])
    return 1


@contextlib.contextmanager
def paused(error=None):
    """Has the pauses between tries end at once, or raise; answers how long each would have been."""
    from agent_calls import ask

    pauses = []

    def sleep(seconds):
        pauses.append(seconds)
        if error:
            raise error

    with mock.patch.object(ask.time, "sleep", sleep):
        yield pauses


def script(ends, per_calls=("1000",), eligible=(), **chain):
    """A caller at a node with one agent, whose calls end as `ends` says, one after the other."""
    from agent_calls.ask import Caller
    from ombrachain import Wallet

    owner, metadata = "0d" * 20, json.dumps({"name": "judge", "abi": [JUDGE]})
    version = {"version": "1.0.0", "deterministic": True}
    version["metadataHash"] = sha256(metadata.encode()).hexdigest()
    suggested, able = list(per_calls), list(eligible)

    class Scripted(Caller):
        agent_id = sha256(f"agent|{owner}|judge".encode()).hexdigest()

        def __init__(self):
            self.sent, self.estimated = [], 0
            super().__init__(Wallet.from_mnemonic(DEVELOPMENT, 0), None, **chain)

        def rpc(self, method, *params, **_):
            return getattr(self, method)(*params)

        def ombra_chainInfo(self):
            return {"chainId": "home", "genesisHash": "99" * 32}

        def ombra_getAccount(self, _):
            return {"pendingNonce": 7 + len(self.sent)}

        def ombra_getAgent(self, _):
            return {"owner": owner, "metadata": metadata, "version": version}

        def ombra_estimateCall(self, wish):
            self.estimated += 1
            per_call = suggested.pop(0) if len(suggested) > 1 else suggested[0]
            prices = wish.get("prices") or {**PRICES, "perCall": per_call}
            if prices["perCall"] == "away":
                raise OSError("no answer")
            limits = {"inputTokens": 0, "outputTokens": 0, "fuel": 0, "resultBytes": 64}
            held = {"floor": str(floor_of(prices["perCall"]))}
            held["maxFee"] = str(held_of(prices["perCall"]))
            told = {"prices": prices, "limits": limits, "needed": 3, **held}
            return {**told, "eligible": able.pop(0) if able else 3}

        def ombra_sendTransaction(self, tx):
            self.sent.append(tx)

        def ombra_waitForTransaction(self, _):
            return {"status": "included"}

        def ombra_waitForCall(self, *_):
            tx, status = self.sent[-1], ends[len(self.sent) - 1]
            round_ = {"size": 3, "members": []}
            if status != "unassigned":
                round_["decidedAt"] = 9
            named = {"requester": tx["from"][-40:], "appealable": False, "rounds": [round_]}
            named["payloadHash"] = calls.compute_result_hash(tx["payload"])
            named["budget"] = str(calls.price_of(tx["prices"], tx["limits"]))
            bill = {name: "0" for name in (*calls.check.BILL, "penalties")}
            named["settled"] = status == "unassigned"
            return {**tx, **named, **bill, "refund": tx["maxFee"], "status": status}

    return Scripted()


def floor_of(per_call):
    return 3 * (int(per_call) + 100)


def held_of(per_call):
    return 3 * (int(per_call) + 200)


def asked(caller, **more):
    return caller.call_agent(caller.agent_id, "judge", ["x", 1], **more)


def prices_of(caller):
    return [tx["prices"]["perCall"] for tx in caller.sent]


def tried_again():
    """A call that ends unassigned is sent again: how often, after which pauses, at which prices."""
    never = ["unassigned"] * 9
    on_result = [{"when": "success", "to": "1" * 40, "amount": "7"}]
    with paused() as pauses:
        caller = script(never, ["1000", "1004", "1001"])
        ended = asked(caller, onResult=on_result)
        status, values, call = ended
        same(("unassigned", None, 3), (status, values, ended.tries))
        # 1001 and a quarter are 1251.25.
        same(["1000", "1004", "1252"], prices_of(caller))
        held = [str(held_of(it) + 7) for it in ("1000", "1004", "1252")]
        same(held, [tx["maxFee"] for tx in caller.sent])
        same([7, 8, 9], [tx["nonce"] for tx in caller.sent])
        same(3, len({tx["callId"] for tx in caller.sent}))
        same(caller.sent[-1]["callId"], call["callId"])
        same([2, 4], pauses)
        copied = copy.copy(ended)
        same((ended, 3), (copied, copied.tries))
    with paused() as pauses:
        caller = script(never)
        same(5, asked(caller, tries=5).tries)
        same(["1000", "1000", "1250", "1250", "1250"], prices_of(caller))
        same([2, 4, 4, 4], pauses)
        same(1, asked(script(never), tries=1).tries)
        for end in ("failed", "timedOut"):
            ended = asked(script([end]))
            same((end, 1), (ended.status, ended.tries))
        same(4, len(pauses))
        ended = asked(script(["unassigned", "failed"]))
        same(("failed", 2), (ended.status, ended.tries))


def tried_within_what_is_given():
    """Prices stay as given, and no more is held than is allowed."""
    never = ["unassigned"] * 9
    prices, limits = {**PRICES, "perCall": "900"}, {"inputTokens": 1, "outputTokens": 1, "fuel": 1}
    with paused():
        caller = script(never)
        asked(caller, prices=prices)
        same((["900"] * 3, 3), (prices_of(caller), caller.estimated))
        caller = script(never)
        asked(caller, prices=prices, limits={**limits, "resultBytes": 1}, maxFee="5000")
        same((["900"] * 3, 0), (prices_of(caller), caller.estimated))
        on_result = [{"when": "success", "to": "1" * 40, "amount": "7"}]
        for least, tries in ((floor_of("1250") + 7, 3), (floor_of("1250") + 6, 2)):
            caller = script(never)
            ended = asked(caller, onResult=on_result, maxFee=str(least))
            same(("unassigned", tries), (ended.status, ended.tries))
            same([str(least)] * tries, [tx["maxFee"] for tx in caller.sent])
        # The third estimate is of the prices that the node suggests, the fourth of the higher ones.
        caller = script(never, eligible=[3, 2, 2, 3])
        same((2, ["1000", "1250"]), (asked(caller).tries, prices_of(caller)))
        same(1, asked(script(never, eligible=[3, 2, 2, 2])).tries)


def tries_that_fail():
    """What is raised says how many calls were sent, and ends a pause."""
    never = ["unassigned"] * 9
    with paused():
        told = refused(RuntimeError, lambda: asked(script(never, eligible=[2])))
        same((True, 0), ("2 miners" in str(told), told.tries))
        told = refused(OSError, lambda: asked(script(never, ["1000", "away"])))
        same(1, told.tries)
        for tries in (0, -1, 1.5, "3", None, True):
            told = refused(ValueError, lambda tries=tries: asked(script(never), tries=tries))
            same((True, 0), ("tries" in str(told), told.tries))
    caller = script(never)
    with paused(KeyboardInterrupt()) as pauses:
        told = refused(KeyboardInterrupt, lambda: asked(caller))
    same((1, 1, [2]), (told.tries, len(caller.sent), pauses))


def for_one_chain():
    """Whoever names its chain signs for no other one that a node names."""
    from agent_calls.ask import OtherChain

    home, other = {"chain_id": "home", "genesis_hash": "99" * 32}, "11" * 32
    for given in ({}, home, {"chain_id": "home"}, {"genesis_hash": "99" * 32}):
        caller = script(["failed"], **given)
        same("failed", asked(caller).status)
        same(["home"], [tx["chainId"] for tx in caller.sent])
    for given in ({"chain_id": "away"}, {"genesis_hash": other}, {**home, "genesis_hash": other}):
        told = refused(OtherChain, lambda given=given: script(["failed"], **given))
        assert "nothing was signed" in str(told), told


def refunded(people, agent_id):
    """A call for which nobody works is sent twice on the chain, and its escrow comes back."""
    limits = {"inputTokens": 100, "outputTokens": 100, "fuel": 0, "resultBytes": 512}
    prices = {**PRICES, "perCall": "1", "completionPerM": "0"}
    told = {"prices": prices, "limits": limits, "maxFee": "10000", "tries": 2}
    caller, first = people[1], people[1].nonce()
    with paused() as pauses:
        ended = caller.call_agent(agent_id, "judge", ["x", 1], **told)
    same(("unassigned", None, 2, [2]), (ended.status, ended.values, ended.tries, pauses))
    ids = [
        calls.compute_call_id(caller.chain_id, caller.wallet.address, first + it) for it in (0, 1)
    ]
    same(ids[1], ended.call["callId"])
    for call_id in ids:
        call = caller.rpc("ombra_getCall", call_id)
        same(("unassigned", "10000"), (call["status"], call["refund"]))
    return ended.tries


def main(urls):
    counted = golden()
    wrong_arguments()
    for url in urls:
        tried_again()
        tried_within_what_is_given()
        tries_that_fail()
        for_one_chain()
        counted.update(called(url))
    print(json.dumps(counted))


main(sys.argv[2:])
