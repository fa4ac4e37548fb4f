"""An MCP server over streamable HTTP, made with the official SDK: PORT."""

import os
import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("notes", log_level="ERROR")


@server.tool()
def reverse(text: str) -> str:
    """Turns a text around."""
    return text[::-1]


@server.tool()
def die() -> str:
    """Ends the server in the middle of the call."""
    os._exit(1)


server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
