"""What the official MCP client expects of the gateway, with a miner that follows a script.

The package's versions 1 and 2 have different interfaces; one of them is here.
"""

import asyncio
import contextlib
import json
import os
import sys

import mcp

VERSION, TRANSPORT = sys.argv[1:]
URL, KEY = os.environ["MCP_URL"], os.environ["MCP_KEY"]
COMMAND = json.loads(os.environ["MCP_COMMAND"])
HEADERS = {"Authorization": f"Bearer {KEY}"}
AGENT, PINNED = os.environ["MCP_AGENT"], os.environ["MCP_TOOL"]
TOOLS = {"ask", "call_agent", "list_agents", "get_agent", "get_run", "get_call", "cancel", "wallet", PINNED}
# Names that no other version or transport uses.
OWN = f"{VERSION}-{TRANSPORT}"


def stdio_parameters():
    return mcp.StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=dict(os.environ))


@contextlib.asynccontextmanager
async def of_version_2():
    if TRANSPORT == "stdio":
        server = stdio_parameters()
    else:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        http = httpx2.AsyncClient(headers=HEADERS, timeout=60)
        server = streamable_http_client(URL, http_client=http)
    mode = "legacy" if VERSION < "2026" else VERSION
    async with mcp.Client(server, mode=mode) as client:
        assert client.protocol_version == VERSION, client.protocol_version
        yield client


@contextlib.asynccontextmanager
async def of_version_1():
    async with contextlib.AsyncExitStack() as stack:
        if TRANSPORT == "stdio":
            from mcp.client.stdio import stdio_client

            opened = stdio_client(stdio_parameters())
        else:
            from mcp.client.streamable_http import streamablehttp_client

            opened = streamablehttp_client(URL, headers=HEADERS)
        read, write, *_ = await stack.enter_async_context(opened)
        session = await stack.enter_async_context(mcp.ClientSession(read, write))
        told = await session.initialize()
        assert told.protocolVersion == VERSION, told.protocolVersion
        yield session


def plain(model):
    return model.model_dump(by_alias=True, exclude_none=True)


async def play(client):
    told = plain(await client.list_tools())
    tools = {tool["name"]: tool for tool in told["tools"]}
    assert TOOLS <= set(tools), set(tools)
    for tool in tools.values():
        assert tool["outputSchema"]["type"] == "object" and tool["description"], tool
        assert "readOnlyHint" in tool["annotations"], tool

    progress = []

    async def hear(number, total, message):
        progress.append((number, message))

    async def call(name, fails=False, **arguments):
        result = plain(await client.call_tool(name, arguments, progress_callback=hear))
        assert result.get("isError", False) == fails, result
        structured = result["structuredContent"]
        assert json.loads(result["content"][0]["text"]) == structured, result
        return structured

    async def refused(code, name, **arguments):
        error = (await call(name, fails=True, **arguments))["error"]
        assert error["code"] == code, error
        return error

    # An answer, its price, and how far it was meanwhile.
    before = await call("wallet")
    answer = await call("ask", prompt="say Hello", system="Be brief.", max_completion_tokens=50)
    assert (answer["status"], answer["answer"], answer["finishReason"]) == ("completed", "Hello", "stop"), answer
    assert answer["completionTokens"] == 7 and answer["costMicro"] > 107, answer
    numbers = [number for number, _ in progress]
    assert numbers and numbers == sorted(set(numbers)), progress
    after = await call("wallet")
    assert after["spentMicro"] == before["spentMicro"] + answer["costMicro"], (before, after)
    assert after["balanceMicro"] == before["balanceMicro"] - answer["costMicro"], (before, after)
    again = await call("get_run", run_id=answer["runId"])
    assert again == answer, (again, answer)

    # The same question with the same key is the same run.
    keyed = dict(prompt="say keyed", max_completion_tokens=50, idempotency_key=f"key {OWN}")
    first = await call("ask", **keyed)
    assert await call("ask", **keyed) == first
    await refused("idempotency_key_reused", "ask", **{**keyed, "prompt": "say other"})

    # A run that takes long is looked at later.
    held = await call("ask", prompt=f"hold {OWN}", wait_seconds=0)
    assert held["status"] == "running" and held["runId"], held
    while not held.get("claimed"):
        held = await call("get_run", run_id=held["runId"], wait_seconds=1)
    await refused("not_cancellable", "cancel", run_id=held["runId"])
    print("let go", OWN, flush=True)
    ended = await call("get_run", run_id=held["runId"], wait_seconds=45)
    assert ended["status"] == "completed", ended

    # A run that no miner wants is taken back, and only what its places cost is lost.
    waiting = await call("ask", prompt="ignore this", wait_seconds=0)
    assert waiting["status"] == "running", waiting
    cancelled = await call("cancel", run_id=waiting["runId"])
    assert cancelled == {"status": "cancelled", "runId": waiting["runId"]}, cancelled
    assert await call("cancel", run_id=waiting["runId"]) == cancelled
    gone = await call("get_run", run_id=waiting["runId"])
    assert gone["status"] == "failed" and gone["error"]["code"] == "cancelled", gone
    assert (await call("wallet"))["openRequests"] == 0

    # An agent of the settings is a tool, whose author says what it does; a committee answers.
    assert tools[PINNED]["inputSchema"]["required"] == ["review"], tools[PINNED]
    assert tools[PINNED]["description"].endswith("Judges what it is told.\nJudges one review.")
    before = await call("wallet")
    pinned = await call(PINNED, review="say fine")
    assert pinned["answer"] == {"verdict": "fine", "letters": "4"}, pinned
    assert (pinned["status"], pinned["committee"], pinned["agreeing"]) == ("completed", 3, 3), pinned
    after = await call("wallet")
    assert after["spentMicro"] == before["spentMicro"] + pinned["costMicro"], (before, after)
    assert await call("get_call", call_id=pinned["callId"]) == pinned
    assert (await refused("invalid_value", PINNED, revue="a"))["argument"] in ("review", "revue")

    # Any agent is called by its version; one that takes long is looked at later.
    judge = dict(agent=AGENT, method="judge")
    keyed = dict(judge, arguments={"review": "say so"}, idempotency_key=f"call {OWN}")
    called = await call("call_agent", **keyed)
    assert called["answer"]["verdict"] == "so", called
    assert await call("call_agent", **keyed) == called
    held = await call("call_agent", **judge, arguments={"review": f"hold call-{OWN}"}, wait_seconds=0)
    assert held["status"] == "running" and held["callId"], held
    await refused("run_not_found", "cancel", run_id=held["callId"])
    print("let go", f"call-{OWN}", flush=True)
    ended = await call("get_call", call_id=held["callId"], wait_seconds=45)
    assert ended["status"] == "completed" and ended["answer"]["verdict"] == f"call-{OWN}", ended
    await refused("call_failed_paid", "call_agent", **judge, arguments={"review": "fail no"})
    await refused("method_not_found", "call_agent", agent=AGENT, method="jury")
    dear = dict(judge, arguments={"review": "say so"}, max_cost_micro=100)
    assert (await refused("invalid_value", "call_agent", **dear))["argument"] == "max_cost_micro"
    await refused("no_miner", "call_agent", **judge, arguments={"review": "say so"}, committee=5)
    await refused("call_not_found", "get_call", call_id="00" * 32)

    # What cannot be is said with the argument's name, and costs nothing.
    assert (await refused("invalid_value", "ask"))["argument"] == "prompt"
    assert (await refused("invalid_value", "ask", prompt="say a", promt="b"))["argument"] == "promt"
    await refused("invalid_value", "ask", prompt="say a", wait_seconds=46)
    await refused("model_not_found", "ask", prompt="say a", model="gpt-5")
    await refused("insufficient_quota", "ask", prompt="say a", max_completion_tokens=60000)
    await refused("run_not_found", "get_run", run_id="00" * 32)
    await refused("run_failed", "ask", prompt="refuse no", max_completion_tokens=50)
    listed = (await call("list_agents"))["agents"]
    assert [it["name"] for it in listed if it["model"] == AGENT] == ["judge"], listed
    try:
        await client.call_tool("spend", {})
        raise AssertionError("a tool that there is not was called")
    except Exception as error:
        assert "Unknown tool" in str(error), error


async def main():
    opened = of_version_2() if hasattr(mcp, "Client") else of_version_1()
    async with opened as client:
        await play(client)
    print("done", OWN)


asyncio.run(main())
