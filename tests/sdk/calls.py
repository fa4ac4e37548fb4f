"""The package of examples/python for calls of agents: against the golden values, and on a chain
with the agent market, where scripted members answer.

usage: calls.py REPOSITORY [URL]

The node must be a new `ombra dev --v8 0`. Without one only what needs neither node nor packages is
looked at. Prints one line of JSON.
"""

import copy
import json
import os
import subprocess
import sys
import threading
import time
from hashlib import sha256
from pathlib import Path

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
    return {"called": 1 + program(people, agent_id), "changes": len(changes) + 1}


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


def main(urls):
    counted = golden()
    wrong_arguments()
    for url in urls:
        counted.update(called(url))
    print(json.dumps(counted))


main(sys.argv[2:])
