"""The arguments and answers of inferMessages, checked as a miner checks them.

docs/agent-methods.md sections 3 and 13.
"""

import math
import re

from .faults import FieldError, array, short, text
from .schemas import budget, check_schema, members

MESSAGES_MAX = 1024
FUNCTIONS_MAX = 128
DESCRIPTION_BYTES_MAX = 4096
CALL_ID_BYTES_MAX = 128
STOPS_MAX = 4
STOP_BYTES_MAX = 256
TOKENS_MAX = 100_000_000
# Levels of a call's arguments: a miner reads 160 of an envelope, and these begin on the seventh.
DEPTH_MAX = 154
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")

NEEDED = ["messages", "functions", "toolChoice"]
OPTIONAL = ["responseSchema", "maxOutputTokens", "stop"]
# What a message of each role has beside its role and content.
ROLES = {"system": [], "user": [], "assistant": ["toolCalls"], "tool": ["toolCallId"]}


def check_messages(args):
    """The arguments in their order."""
    exactly("args", args, NEEDED, OPTIONAL)
    left = budget()
    checked = {
        "messages": conversation("args.messages", args["messages"]),
        "functions": functions("args.functions", args["functions"], left),
    }
    declared = [function["name"] for function in checked["functions"]]
    checked["toolChoice"] = choice("args.toolChoice", args["toolChoice"], declared)
    if "responseSchema" in args:
        field = "args.responseSchema"
        checked["responseSchema"] = response_schema(field, args["responseSchema"], left)
        if args["toolChoice"] not in ("auto", "none"):
            raise FieldError(field, "a schema", "none where calls are forced by toolChoice")
    if "maxOutputTokens" in args:
        count = args["maxOutputTokens"]
        if type(count) is not int or not 1 <= count <= TOKENS_MAX:
            raise FieldError("args.maxOutputTokens", count, f"an integer from 1 to {TOKENS_MAX}")
        checked["maxOutputTokens"] = count
    stop = stops("args.stop", args.get("stop", []))
    if stop and "responseSchema" in args:
        raise FieldError("args.stop", f"{len(stop)} texts", "none beside responseSchema")
    return {**checked, "stop": stop} if stop else checked


def check_calls(field, given, args):
    """The calls of an answer: of functions that the request declares and allows to call.

    Whether their arguments fit the functions' schemas is not looked at.
    """
    said = [call for message in args["messages"] for call in message.get("toolCalls", [])]
    seen, only = {call["id"] for call in said}, args["toolChoice"]
    allowed = [function["name"] for function in args["functions"]]
    if isinstance(only, dict):
        allowed = [only["name"]]
    elif only == "none":
        allowed = []
    checked = tool_calls(field, given)
    for index, call in enumerate(checked):
        if call["id"] in seen:
            raise FieldError(f"{field}[{index}].id", call["id"], "an id that is new")
        seen.add(call["id"])
        if call["name"] not in allowed:
            expected = "a function that toolChoice allows to call"
            raise FieldError(f"{field}[{index}].name", call["name"], expected)
    return checked


def with_results(args, response, calls, results):
    """The arguments that go on after calls, which are not forced again: `results` has a text for each, by its id."""
    said = {"role": "assistant", "content": response, "toolCalls": calls}
    told = [
        {"role": "tool", "content": results[call["id"]], "toolCallId": call["id"]} for call in calls
    ]
    tool_choice = "none" if args["toolChoice"] == "none" else "auto"
    return {**args, "messages": [*args["messages"], said, *told], "toolChoice": tool_choice}


def exactly(path, value, needed, optional=()):
    """An object with these members."""
    for name in members(path, value):
        if name not in needed and name not in optional:
            known = ", ".join([*needed, *optional])
            raise FieldError(f"{path}.{name}", "an unknown key", f"one of {known}")
    for name in needed:
        if name not in value:
            raise FieldError(f"{path}.{name}", "nothing", "a value")
    return value


def conversation(field, given):
    items = enumerate(array(field, given, MESSAGES_MAX))
    messages = [message(f"{field}[{index}]", item) for index, item in items]
    if not messages:
        raise FieldError(field, "no messages", "at least one")
    seen, waiting = set(), []
    for index, item in enumerate(messages):
        place = f"{field}[{index}]"
        if item["role"] == "tool":
            if item["toolCallId"] not in waiting:
                raise FieldError(place, item["toolCallId"], "a result for a call that waits")
            waiting.remove(item["toolCallId"])
            continue
        if waiting:
            raise FieldError(place, f"role {item['role']}", f"a result for {', '.join(waiting)}")
        for call in item.get("toolCalls", []):
            if call["id"] in seen:
                raise FieldError(place, f"{call['id']!r} twice", "ids that are all different")
            seen.add(call["id"])
            waiting.append(call["id"])
    if waiting:
        expected = f"a result for {', '.join(waiting)}"
        raise FieldError(field, "an end before every call has its result", expected)
    return messages


def message(path, item):
    members(path, item)
    role = item.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise FieldError(f"{path}.role", repr(role), f"one of {', '.join(ROLES)}")
    needed = ["role", "content"] + (["toolCallId"] if role == "tool" else [])
    exactly(path, item, needed, ROLES[role])
    checked = {"role": role, "content": text(f"{path}.content", item["content"])}
    if role == "tool":
        checked["toolCallId"] = call_id(f"{path}.toolCallId", item["toolCallId"])
    calls = tool_calls(f"{path}.toolCalls", item.get("toolCalls", []))
    return {**checked, "toolCalls": calls} if calls else checked


def tool_calls(field, given):
    checked = []
    for index, call in enumerate(array(field, given, 2**32)):
        path = f"{field}[{index}]"
        exactly(path, call, ["id", "name", "arguments"])
        called, name = call_id(f"{path}.id", call["id"]), plain(f"{path}.name", call["name"])
        arguments = f"{path}.arguments"
        arguments = in_order(arguments, members(arguments, call["arguments"]))
        checked.append({"id": called, "name": name, "arguments": arguments})
    return checked


def in_order(path, value, depth=1):
    """The same with the keys of all objects in order, as every program writes arguments."""
    if isinstance(value, str):
        return text(path, value)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if not isinstance(value, (list, tuple, dict)):
        raise FieldError(path, repr(value), "a value of JSON")
    if depth > DEPTH_MAX:
        raise FieldError(path, "one more level", f"at most {DEPTH_MAX} levels")
    if not isinstance(value, dict):
        items = enumerate(value)
        return [in_order(f"{path}[{index}]", item, depth + 1) for index, item in items]
    keys = sorted(text(path, key) for key in value)
    return {key: in_order(f"{path}.{key}", value[key], depth + 1) for key in keys}


def functions(field, given, left):
    checked, names = [], set()
    for index, item in enumerate(array(field, given, FUNCTIONS_MAX)):
        path = f"{field}[{index}]"
        exactly(path, item, ["name", "description", "parameters"])
        name = plain(f"{path}.name", item["name"])
        short(f"{path}.description", item["description"], DESCRIPTION_BYTES_MAX)
        check_schema(f"{path}.parameters", item["parameters"], left)
        if name in names:
            raise FieldError(f"{path}.name", f"{name} twice", "functions of different names")
        names.add(name)
        checked.append({key: item[key] for key in ("name", "description", "parameters")})
    return checked


def choice(field, given, declared):
    if given in ("auto", "none", "required"):
        if given == "required" and not declared:
            raise FieldError(field, given, "functions that can be called")
        return given
    if not isinstance(given, dict):
        raise FieldError(field, repr(given), '"auto", "none", "required" or {"name":…}')
    exactly(field, given, ["name"])
    if given["name"] not in declared:
        raise FieldError(f"{field}.name", given["name"], "the name of a function")
    return {"name": given["name"]}


def response_schema(field, given, left):
    exactly(field, given, ["schema"], ["name"])
    check_schema(f"{field}.schema", given["schema"], left)
    named = {"name": plain(f"{field}.name", given["name"])} if "name" in given else {}
    return {**named, "schema": given["schema"]}


def stops(field, given):
    checked = array(field, given, STOPS_MAX)
    for index, stop in enumerate(checked):
        short(f"{field}[{index}]", stop, STOP_BYTES_MAX)
        if not stop or stop in checked[:index]:
            raise FieldError(f"{field}[{index}]", repr(stop), "some text, each once")
    return checked


def plain(field, name):
    if not NAME.match(text(field, name)):
        raise FieldError(field, repr(name), "1 to 64 of [A-Za-z0-9_-]")
    return name


def call_id(field, value):
    if not text(field, value):
        raise FieldError(field, "0 bytes", f"1 to {CALL_ID_BYTES_MAX} bytes")
    return short(field, value, CALL_ID_BYTES_MAX)
