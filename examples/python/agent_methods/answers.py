"""Answers of miners, and the request that follows one that hands calls back.

docs/agent-methods.md section 8.
"""

import re
from typing import NamedTuple

from .abi import declare, decode_call
from .faults import FieldError, fields, parse, short
from .messages import check_calls, with_results
from .requests import ENVELOPE_BYTES_MAX, METHODS, open_calls, request, texts, tool_result

PLAIN = ["ombraAgent", "method", "finishReason", "response"]
LISTS = ["updatedRoles", "updatedMessages", "pendingToolCallIds", "pendingToolCalls"]
REASONS = {
    "inferToolsChat": ["stop", "tool_calls", "max_iterations", "error"],
    "inferMessages": ["stop", "tool_calls", "length", "error"],
}


class Call(NamedTuple):
    """A call that the requester is to execute, decoded; with calldata only from inferToolsChat."""

    id: str
    name: str
    arguments: dict
    calldata: "str | None" = None


class Answer(NamedTuple):
    """What a miner answered."""

    method: str
    finish_reason: str
    response: str
    roles: list
    messages: list
    calls: list


def read_answer(whole, asked):
    """The answer to the request `asked`.

    Each call of inferToolsChat is compared with what the model said in the conversation, so that a miner cannot slip
    in a call that the model did not make.
    """
    short("finalAnswer", whole, ENVELOPE_BYTES_MAX)
    try:
        read = parse(whole)
    except ValueError:
        raise FieldError("finalAnswer", whole, "JSON") from None
    method = read.get("method") if isinstance(read, dict) else None
    has_lists = method == "inferToolsChat"
    more = LISTS if has_lists else ["toolCalls"] if method == "inferMessages" else []
    fields("", read, PLAIN + more)
    one_of("ombraAgent", read["ombraAgent"], [1])
    one_of("method", method, [*METHODS, ""])
    one_of("finishReason", read["finishReason"], REASONS.get(method, ["stop", "error"]))
    short("response", read["response"], ENVELOPE_BYTES_MAX)
    # A miner that did not understand the request names no method.
    if method != asked.method and read["finishReason"] != "error":
        raise FieldError("method", method, asked.method)
    if method == "inferMessages":
        return read_messages_answer(read, asked)
    lists = [texts(name, read[name]) if has_lists else [] for name in LISTS]
    roles, messages, ids, calldata = lists
    calls = []
    if read["finishReason"] == "tool_calls":
        calls = pending(asked, roles, messages, ids, calldata)
    elif any(lists):
        raise FieldError("updatedMessages", "entries", f"none with {read['finishReason']}")
    return Answer(method, read["finishReason"], read["response"], roles, messages, calls)


def read_messages_answer(read, asked):
    reason, given = read["finishReason"], read["toolCalls"]
    if not isinstance(given, list) or bool(given) != (reason == "tool_calls"):
        raise FieldError("toolCalls", given, f"calls with tool_calls only, not {reason}")
    checked = check_calls("toolCalls", given, asked.args) if given else []
    calls = [Call(call["id"], call["name"], call["arguments"]) for call in checked]
    return Answer(read["method"], reason, read["response"], [], [], calls)


def pending(asked, roles, messages, ids, calldata):
    waiting = open_calls(LISTS[:2], roles, messages, True) if messages else {}
    if not ids or list(waiting) != ids or len(calldata) != len(ids):
        expected = f"the calls that wait in updatedMessages: {list(waiting)}"
        raise FieldError("pendingToolCallIds", ids, expected)
    begins_as(asked.args, roles, messages)
    functions, calls = declare(asked.args["onchainTools"]), []
    for index, (name, given) in enumerate(zip(ids, calldata)):
        field, wanted = f"pendingToolCalls[{index}]", waiting[name]
        if not re.match(r"0x([0-9a-fA-F]{2})*\Z", given):
            raise FieldError(field, given, "0x and hex")
        if wanted["name"] not in functions:
            raise FieldError(field, wanted["name"], "a call of a declared function")
        encoded = functions[wanted["name"]].encode(wanted["arguments"])
        if encoded != bytes.fromhex(given[2:]):
            expected = f"0x{encoded.hex()}, the call of {wanted['name']}"
            raise FieldError(field, given, expected)
        calls.append(Call(name, *decode_call(functions, encoded), given))
    return calls


def begins_as(args, roles, messages):
    """What goes on is signed by the requester, so a miner must not change what the requester said."""
    said = list(zip(args["roles"], args["messages"]))
    for index, (role, text) in enumerate(said):
        kept = index < len(messages) and role == roles[index] and same_text(text, messages[index])
        if not kept:
            got = messages[index] if index < len(messages) else "no message"
            expected = "first the messages of the request, as they were"
            raise FieldError(f"updatedMessages[{index}]", got, expected)


def same_text(one, other):
    """Whether two messages say the same; those with calls and results are JSON, in any form."""
    if one == other:
        return True
    try:
        return alike(parse(one), parse(other))
    except (ValueError, RecursionError):
        return False


def alike(one, other):
    """Whether two values of JSON are the same; in Python, True == 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def resume(asked, answer, results):
    """The request that goes on: `results` is a text for each call of the answer, by its id."""
    ids = [call.id for call in answer.calls]
    if not ids or sorted(results) != sorted(ids):
        raise FieldError("results", sorted(results), f"one for each of {ids}")
    if asked.method == "inferMessages":
        calls = [{"id": it.id, "name": it.name, "arguments": it.arguments} for it in answer.calls]
        args = with_results(asked.args, answer.response, calls, results)
        return request(asked.method, args, asked.deterministic)
    told = [tool_result(name, results[name]) for name in ids]
    roles = answer.roles + ["tool"] * len(told)
    args = {**asked.args, "roles": roles, "messages": answer.messages + told}
    return request(asked.method, args, asked.deterministic)


def one_of(field, value, known):
    if value not in known or type(value) not in (int, str):
        raise FieldError(field, value, f"one of {', '.join(map(str, known))}")
