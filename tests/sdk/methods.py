"""The package of examples/python for agent methods against what all languages agree on.

usage: methods.py REPOSITORY

Needs no node and no packages. Prints one line of JSON.
"""

import json
import sys
from pathlib import Path

ROOT = Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "examples/python"))

import agent_methods as methods  # noqa: E402
from agent_methods.schemas import budget, check_schema  # noqa: E402

VECTORS = json.loads((ROOT / "agent/fixtures/agent-methods.json").read_text("utf-8"))
ASKED = {vector["name"]: methods.read_request(vector["prompt"]) for vector in VECTORS["requests"]}
REFUSED = []


def same(expected, got):
    assert expected == got, f"expected {expected!r}, got {got!r}"


def refused(field, what, *arguments):
    """Whoever breaks a rule is told the field."""
    try:
        taken = what(*arguments)
    except methods.FieldError as error:
        if field is not None:
            same(field, error.field)
        REFUSED.append(error)
        return
    raise AssertionError(f"taken: {arguments!r} as {taken!r}")


def turned(value):
    """The same with the keys of all objects in another order, but for schemas, which are written as
    they are."""
    if isinstance(value, list):
        return [turned(item) for item in value]
    if isinstance(value, dict):
        whole = ("parameters", "schema")
        members = reversed(list(value.items()))
        return {key: item if key in whole else turned(item) for key, item in members}
    return value


def requests():
    for vector in VECTORS["requests"]:
        read = turned(json.loads(vector["prompt"]))
        made = methods.request(read["method"], read["args"], read.get("deterministic", False))
        same((vector["prompt"], None), tuple(methods.write_request(made)))
    for vector in VECTORS["malformed"]:
        # Of several missing arguments, each program names the one that it looks at first, and a key
        # that occurs twice is there once.
        args = json.loads(vector["prompt"]).get("args") or {}
        is_told = vector["field"].startswith("args.") and len(args) > 2
        is_told = is_told and vector["got"] != "nothing"
        refused(vector["field"] if is_told else None, methods.read_request, vector["prompt"])
    whole = methods.write_request(methods.infer_string("p")).prompt
    for mark in ("1.0", "true", '"1"'):
        other = whole.replace('"ombraAgent":1', f'"ombraAgent":{mark}')
        refused("ombraAgent", methods.read_request, other)


def builders():
    """What is not said is filled in, and what is too long goes into a blob."""
    empty = len(methods.write_request(methods.infer_string("")).prompt)

    def of(count):
        return methods.write_request(methods.infer_string("x" * (count - empty)))

    same((16384, None), (len(of(16384).prompt), of(16384).blob))
    same('{"ombraAgent":1,"method":"inferString","blob":true}', of(16385).prompt)
    same(16385, len(of(16385).blob))
    refused("args", of, 4194304 - 20)
    half = methods.infer_number("p", min_value=0).args
    same(("0", str(2**255 - 1)), (half["minValue"], half["maxValue"]))
    other = methods.infer_number("p", max_value=5).args
    same((str(-(2**255)), "5"), (other["minValue"], other["maxValue"]))
    same("0", methods.infer_number("p").args["maxValue"])
    chat = methods.infer_chat([("user", "hi")])
    same((["user"], ["hi"]), (chat.args["roles"], chat.args["messages"]))
    tools = methods.infer_tools_chat([("user", "hi")], [("f()", "does it")])
    same([{"signature": "f()", "description": "does it"}], tools.args["onchainTools"])
    refused("args.onchainTools[1].signature", methods.infer_tools_chat, [("user", "x")],
            [("transfer(address,uint256)", ""), ("func_2093253501(bytes)", "")])


def answers():
    for vector in VECTORS["answers"]:
        answer = methods.read_answer(vector["text"], ASKED[vector["request"]])
        calls = [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in answer.calls]
        same(vector.get("calls", []), calls)
    first = VECTORS["answers"][0]
    for mark in ("1.0", "true"):
        other = first["text"].replace('"ombraAgent":1', f'"ombraAgent":{mark}')
        refused("ombraAgent", methods.read_answer, other, ASKED[first["request"]])
    for vector in VECTORS["wrongAnswers"]:
        refused(vector["field"], methods.read_answer, vector["text"], ASKED["tools"])
    for vector in VECTORS["wrongMessagesAnswers"]:
        forced = ASKED["messages, forced"]
        refused(vector["field"], methods.read_answer, vector["text"], forced)
    for vector in VECTORS["resumed"]:
        asked = methods.read_request(vector["request"])
        answer = methods.read_answer(vector["answer"], asked)
        following = methods.resume(asked, answer, vector["results"])
        same(vector["prompt"], methods.write_request(following).prompt)
        refused("results", methods.resume, asked, answer, {})
        if asked.method == "inferMessages":
            continue
        changed = json.loads(vector["answer"])
        changed["updatedMessages"][0] += " And say it always."
        refused("updatedMessages[0]", methods.read_answer, json.dumps(changed), asked)


def strangers():
    """What a miner or a program writes that is no JSON, or that Python takes for something else."""
    asked = ASKED["messages, forced"]
    answer = next(it for it in VECTORS["answers"] if it["request"] == "messages, forced")
    call = json.loads(answer["text"])["toolCalls"][0]

    def calling(arguments):
        written = json.dumps({**call, "arguments": {}})[:-3]
        whole = json.loads(answer["text"])
        head = json.dumps({**whole, "toolCalls": []})[:-2]
        return f'{head}{written}{{"a":{arguments}}}}}]}}'

    def nested(levels):
        return calling("[" * levels + "]" * levels)

    for taken in ("[-1.5e3,18446744073709551617,true,null]", '"\\ud83d\\ude00"'):
        got = methods.read_answer(calling(taken), asked).calls[0].arguments
        same({"a": json.loads(taken)}, got)
    methods.read_answer(nested(153), asked)
    for wrong in ("NaN", "-Infinity", "1e400", "1" * 2000):
        refused("finalAnswer", methods.read_answer, calling(wrong), asked)
    refused("toolCalls[0].arguments.a", methods.read_answer, calling('"\\ud800"'), asked)
    refused("toolCalls[0].arguments.a" + "[0]" * 153, methods.read_answer, nested(154), asked)
    refused("finalAnswer", methods.read_answer, nested(1_000_000), asked)
    for prompt in ("", "[" * 1_000_000, '{"ombraAgent":NaN}'):
        refused("prompt", methods.read_request, prompt)
    # A miner that turns true into 1 has changed what the requester said.
    vector = next(it for it in VECTORS["resumed"] if "inferToolsChat" in it["request"])
    read = json.loads(vector["request"])
    said = {"content": "", "tool_calls": [{"id": "x", "name": "f", "arguments": {"on": True}}]}
    told = {"tool_call_id": "x", "content": "done"}
    before = [json.dumps(said), json.dumps(told)]
    read["args"]["roles"][:0] = ["assistant", "tool"]
    read["args"]["messages"][:0] = before
    asked = methods.read_request(json.dumps(read))
    changed = json.loads(vector["answer"])
    changed["updatedRoles"][:0] = ["assistant", "tool"]
    changed["updatedMessages"][:0] = [json.dumps(said, separators=(",", ":")), before[1]]
    methods.read_answer(json.dumps(changed), asked)
    changed["updatedMessages"][0] = before[0].replace("true", "1")
    refused("updatedMessages[0]", methods.read_answer, json.dumps(changed), asked)


def functions():
    for vector in VECTORS["selectors"]:
        same(vector["selector"], "0x" + methods.Function(vector["signature"]).selector.hex())
    for signature in VECTORS["wrongSignatures"]:
        refused("f", methods.Function, signature, "f")
    for vector in VECTORS["calls"]:
        called = methods.Function(vector["signature"])
        calldata = called.encode(vector["arguments"])
        same(vector["calldata"], f"0x{calldata.hex()}")
        same((called.name, vector["decoded"]), methods.decode_call({called.name: called}, calldata))
    for vector in VECTORS["wrongCalls"]:
        refused(None, methods.Function(vector["signature"]).encode, vector["arguments"])
    for vector in VECTORS["wrongCalldata"]:
        known = methods.declare([{"signature": vector["signature"], "description": ""}])
        calldata = bytes.fromhex(vector["calldata"][2:])
        refused("calldata", methods.decode_call, known, calldata)


def schemas():
    for schema in VECTORS["schemas"]:
        check_schema("s", schema, budget())
    for vector in VECTORS["wrongSchemas"]:
        refused(vector["field"], check_schema, "s", vector["schema"], budget())
    many = {f"p{number}": {} for number in range(512)}
    schema = {"properties": many, "required": list(many)}
    refused("s.properties.p511", check_schema, "s", schema, budget())
    check_schema("s", {"properties": dict(list(many.items())[:256])}, budget())
    refused("s.properties", check_schema, "s", {"properties": many}, {**budget(), "parts": 2000})
    bare = methods.infer_messages([{"role": "user", "content": "hi"}])
    same(ASKED["messages"], bare)
    more = methods.infer_messages(
        bare.args["messages"], response_schema={"schema": {}}, max_output_tokens=5
    )
    same(({"schema": {}}, 5), (more.args["responseSchema"], more.args["maxOutputTokens"]))


requests()
builders()
answers()
strangers()
schemas()
functions()
counted = {name: len(VECTORS[name]) for name in ("requests", "answers", "calls")}
print(json.dumps({**counted, "refused": len(REFUSED)}))
