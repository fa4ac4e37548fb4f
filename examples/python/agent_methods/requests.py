"""Requests for the five methods: checked as a miner checks them, and written as the chain has them.

docs/agent-methods.md sections 2 to 6.
"""

import json
import re
from typing import NamedTuple

from .abi import declare
from .faults import NUMBER, FieldError, array, boolean, fields, parse, short, text
from .messages import check_messages as check_message_arguments

ENVELOPE_BYTES_MAX = 4 * 1024 * 1024
PROMPT_BYTES_MAX = 16384
ALLOWED_VALUES_MAX = 256
ALLOWED_VALUE_BYTES_MAX = 1024
ALLOWED_VALUES_BYTES_MAX = 8192
MCP_SERVERS_MAX = 16
MCP_SERVER_URL_BYTES_MAX = 2048
MESSAGES_MAX = 1024
CALL_ID_BYTES_MAX = 128
ITERATIONS_MAX = 200
INTEGER_MIN, INTEGER_MAX = -(2**255), 2**255 - 1
# Room for the key `deterministic`, so that asking for it cannot make a request too long.
ROOM = len('"deterministic":true,')
# White space at the ends of a text, as the miner takes it away from outputs.
BLANK = "[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
BLANK_AT_AN_END = re.compile(f"{BLANK}|.*{BLANK}\\Z", re.DOTALL)

ARGUMENTS = {
    "inferString": ["prompt", "system", "chainOfThought", "allowedValues"],
    "inferNumber": ["prompt", "system", "minValue", "maxValue", "chainOfThought"],
    "inferChat": ["roles", "messages", "chainOfThought"],
    "inferToolsChat": [
        "roles",
        "messages",
        "mcpServerUrls",
        "onchainTools",
        "maxIterations",
        "chainOfThought",
    ],
}
# Those of inferMessages are checked apart.
METHODS = [*ARGUMENTS, "inferMessages"]


class Request(NamedTuple):
    """A request that keeps every rule."""

    method: str
    args: dict
    deterministic: bool = False


class Prompt(NamedTuple):
    """What stands in the transaction, and what goes into its blob if it is too long for that."""

    prompt: str
    blob: "str | None" = None


def infer_string(prompt, system="", chain_of_thought=False, allowed_values=(), deterministic=False):
    """A text; with `allowed_values` exactly one of them."""
    args = {"prompt": prompt, "system": system, "chainOfThought": chain_of_thought}
    return request("inferString", {**args, "allowedValues": list(allowed_values)}, deterministic)


def infer_number(
    prompt, system="", min_value=None, max_value=None, chain_of_thought=False, deterministic=False
):
    """A whole number; the bounds are numbers or decimal strings."""
    if min_value is None and max_value is None:
        low, high = "0", "0"
    else:
        low = str(INTEGER_MIN if min_value is None else min_value)
        high = str(INTEGER_MAX if max_value is None else max_value)
    args = {"prompt": prompt, "system": system, "minValue": low, "maxValue": high}
    return request("inferNumber", {**args, "chainOfThought": chain_of_thought}, deterministic)


def infer_chat(messages, chain_of_thought=False, deterministic=False):
    """The next message of a conversation of (role, text)."""
    args = {**lists(messages), "chainOfThought": chain_of_thought}
    return request("inferChat", args, deterministic)


def infer_tools_chat(
    messages,
    onchain_tools=(),
    mcp_server_urls=(),
    max_iterations=8,
    chain_of_thought=False,
    deterministic=False,
):
    """The next message of a conversation with tools; `onchain_tools` are (signature, description)."""
    tools = [{"signature": name, "description": does} for name, does in onchain_tools]
    more = {"mcpServerUrls": list(mcp_server_urls), "onchainTools": tools}
    more["maxIterations"] = max_iterations
    args = {**lists(messages), **more, "chainOfThought": chain_of_thought}
    return request("inferToolsChat", args, deterministic)


def infer_messages(
    messages,
    functions=(),
    tool_choice="auto",
    response_schema=None,
    max_output_tokens=None,
    stop=(),
    deterministic=False,
):
    """The next message of a conversation, with functions and schemas as chat programs have them.

    `messages`, `functions` and `response_schema` are objects as in docs/agent-methods.md section 13.
    """
    args = {"messages": list(messages), "functions": list(functions), "toolChoice": tool_choice}
    if response_schema is not None:
        args["responseSchema"] = response_schema
    if max_output_tokens is not None:
        args["maxOutputTokens"] = max_output_tokens
    return request("inferMessages", {**args, "stop": list(stop)}, deterministic)


def lists(messages):
    return {"roles": [role for role, _ in messages], "messages": [said for _, said in messages]}


def tool_result(call_id, content):
    """The text of a message of role `tool`."""
    return written({"tool_call_id": text("id", call_id), "content": text("content", content)})


def request(method, args, deterministic=False):
    """A request for `method` with exactly its arguments."""
    if method == "inferMessages":
        checked = check_message_arguments(args)
    else:
        checked = check_arguments(method, args)
    if method == "inferNumber" and int(checked["minValue"]) > int(checked["maxValue"]):
        expected = f"at most maxValue, {checked['maxValue']}"
        raise FieldError("args.minValue", checked["minValue"], expected)
    if "roles" in checked:
        with_tools = method == "inferToolsChat"
        check_messages(checked["roles"], checked["messages"], with_tools)
    made = Request(method, checked, boolean("deterministic", deterministic))
    size = len(envelope(made).encode()) + (0 if deterministic else ROOM)
    if size > ENVELOPE_BYTES_MAX:
        raise FieldError("args", f"{size} bytes", f"at most {ENVELOPE_BYTES_MAX} bytes")
    return made


def check_arguments(method, args):
    if method not in ARGUMENTS:
        raise FieldError("method", method, f"one of {', '.join(METHODS)}")
    fields("args", args, ARGUMENTS[method])
    return {name: CHECKS[name](f"args.{name}", args[name]) for name in ARGUMENTS[method]}


def write_request(made):
    """The prompt of the AGENT_REQUEST, and the content of its `promptBlobId` if there is one."""
    whole = envelope(made)
    if len(whole.encode()) <= PROMPT_BYTES_MAX:
        return Prompt(whole)
    return Prompt(written({"ombraAgent": 1, "method": made.method, "blob": True}), whole)


def read_request(whole):
    """The request of an envelope that this or another program wrote."""
    try:
        read = parse(whole)
    except ValueError:
        raise FieldError("prompt", whole, "JSON") from None
    mark = read.get("ombraAgent") if isinstance(read, dict) else None
    if type(mark) is not int or mark != 1 or "args" not in read:
        raise FieldError("ombraAgent", "something else", "an envelope with arguments")
    known = {"ombraAgent", "method", "deterministic", "args"}
    fields("", {key: value for key, value in read.items() if key not in known}, [])
    return request(read.get("method"), read["args"], read.get("deterministic", False))


def envelope(made):
    head = {"ombraAgent": 1, "method": made.method}
    if made.deterministic:
        head["deterministic"] = True
    return written({**head, "args": made.args})


def written(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def integer(field, value):
    is_number = isinstance(value, str) and NUMBER.match(value) and len(value) <= 1024
    if not is_number or not INTEGER_MIN <= int(value) <= INTEGER_MAX:
        raise FieldError(field, value, "a decimal string ^-?[0-9]+$ from -2^255 to 2^255-1")
    return str(int(value))


def once(field, values):
    for index, value in enumerate(values):
        if value in values[:index]:
            raise FieldError(f"{field}[{index}]", f"{value!r} twice", "every value once")
    return values


def allowed_values(field, values):
    for index, value in enumerate(array(field, values, ALLOWED_VALUES_MAX)):
        short(f"{field}[{index}]", value, ALLOWED_VALUE_BYTES_MAX)
        if not value or BLANK_AT_AN_END.match(value):
            expected = "a text that neither is empty nor begins or ends with white space"
            raise FieldError(f"{field}[{index}]", repr(value), expected)
    size = sum(len(value.encode()) for value in values)
    if size > ALLOWED_VALUES_BYTES_MAX:
        expected = f"at most {ALLOWED_VALUES_BYTES_MAX} bytes in all values together"
        raise FieldError(field, f"{size} bytes", expected)
    return once(field, list(values))


def servers(field, urls):
    for index, url in enumerate(array(field, urls, MCP_SERVERS_MAX)):
        short(f"{field}[{index}]", url, MCP_SERVER_URL_BYTES_MAX)
        if not url.startswith(("https://", "http://")):
            raise FieldError(f"{field}[{index}]", url, "an address of https:// or http://")
    return once(field, list(urls))


def tools(field, declarations):
    given = array(field, declarations, MESSAGES_MAX)
    for index, declaration in enumerate(given):
        fields(f"{field}[{index}]", declaration, ["signature", "description"])
        for name in ("signature", "description"):
            text(f"{field}[{index}].{name}", declaration[name])
    declare(given, field)
    names = ("signature", "description")
    return [{name: declaration[name] for name in names} for declaration in given]


def iterations(field, value):
    if type(value) is not int or not 1 <= value <= ITERATIONS_MAX:
        raise FieldError(field, value, "an integer from 1 to 200")
    return value


def texts(field, values):
    given = array(field, values, ENVELOPE_BYTES_MAX)
    return [text(f"{field}[{index}]", value) for index, value in enumerate(given)]


CHECKS = {
    "prompt": text,
    "system": text,
    "chainOfThought": boolean,
    "allowedValues": allowed_values,
    "minValue": integer,
    "maxValue": integer,
    "roles": texts,
    "messages": texts,
    "mcpServerUrls": servers,
    "onchainTools": tools,
    "maxIterations": iterations,
}


def check_messages(roles, messages, with_tools):
    """Refuses a conversation that does not hang together, or in which a call waits."""
    waiting = open_calls(("args.roles", "args.messages"), roles, messages, with_tools)
    if waiting:
        expected = f"a result for {', '.join(waiting)}"
        raise FieldError("args.messages", "an end before every call has its result", expected)


def open_calls(names, roles, messages, with_tools):
    """The calls that wait for a result at the end of a conversation, by their ids; `names` are
    what messages call the two lists."""
    roles_field, field = names
    if len(roles) != len(messages):
        raise FieldError(field, f"{len(messages)} entries", f"{len(roles)} entries")
    if not messages:
        raise FieldError(field, "no messages", "at least one")
    if len(messages) > MESSAGES_MAX:
        raise FieldError(field, f"{len(messages)} entries", f"at most {MESSAGES_MAX} entries")
    known = ["system", "user", "assistant"] + (["tool"] if with_tools else [])
    seen, waiting = set(), {}
    for index, (role, said) in enumerate(zip(roles, messages)):
        place = f"{field}[{index}]"
        if role not in known:
            raise FieldError(f"{roles_field}[{index}]", repr(role), f"one of {', '.join(known)}")
        if role == "tool":
            answered = result_of(place, said)
            if answered not in waiting:
                raise FieldError(place, f"a result for {answered!r}", "one for a call that waits")
            del waiting[answered]
        elif waiting:
            raise FieldError(place, f"role {role}", f"a result for {', '.join(waiting)}")
        elif with_tools and role == "assistant":
            for call in calls_of(place, said):
                if call["id"] in seen:
                    raise FieldError(place, f"{call['id']!r} twice", "ids that are all different")
                seen.add(call["id"])
                waiting[call["id"]] = call
    return waiting


def result_of(place, said):
    """The call that a message of role `tool` answers."""
    try:
        read = parse(said)
    except ValueError:
        raise FieldError(place, said, '{"tool_call_id":…,"content":…}') from None
    fields(place, read, ["tool_call_id", "content"])
    text(f"{place}.content", read["content"])
    return call_id(f"{place}.tool_call_id", read["tool_call_id"])


def calls_of(place, said):
    """The calls in a message of role `assistant`; none in plain text."""
    try:
        read = parse(said)
    except ValueError:
        return []
    if not isinstance(read, dict) or "tool_calls" not in read:
        return []
    fields(place, read, ["content", "tool_calls"])
    text(f"{place}.content", read["content"])
    calls = array(f"{place}.tool_calls", read["tool_calls"], ENVELOPE_BYTES_MAX)
    for index, call in enumerate(calls):
        path = f"{place}.tool_calls[{index}]"
        fields(path, call, ["id", "name", "arguments"])
        call_id(f"{path}.id", call["id"])
        text(f"{path}.name", call["name"])
        if not isinstance(call["arguments"], dict):
            raise FieldError(f"{path}.arguments", type(call["arguments"]).__name__, "an object")
    return calls


def call_id(field, value):
    count = len(text(field, value).encode())
    if not 1 <= count <= CALL_ID_BYTES_MAX:
        raise FieldError(field, f"{count} bytes", f"1 to {CALL_ID_BYTES_MAX} bytes")
    return value
