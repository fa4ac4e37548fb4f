"""An MCP client that is given the configuration of docs/gateway.md, and asks what the document asks."""

import asyncio
import json
import os
import sys

import httpx2
import mcp
from mcp.client.streamable_http import streamable_http_client

SERVER = json.loads(sys.argv[1])["mcpServers"]["ombra"]


def server():
    if SERVER.get("type") == "http":
        http = httpx2.AsyncClient(headers=SERVER["headers"], timeout=60)
        return streamable_http_client(SERVER["url"], http_client=http)
    # Where the node is stands in no configuration: it is where every program looks for it.
    env = {**SERVER["env"], **{name: os.environ[name] for name in ["HOME", "PATH", "OMBRA_RPC"]}}
    return mcp.StdioServerParameters(command=SERVER["command"], args=SERVER["args"], env=env)


async def main():
    async with mcp.Client(server()) as client:
        result = await client.call_tool("ask", {"prompt": "What is a nonce?"})
        print(result.structured_content)


asyncio.run(main())
