"""An MCP server over standard input and output that behaves as its first argument says."""

import json
import os
import socket
import subprocess
import sys

MODE = sys.argv[1]
TOOLS = {
    "echo": {"text": {"type": "string"}},
    "environment": {},
    "read": {"path": {"type": "string"}},
    "connect": {"port": {"type": "integer"}},
    "fail": {},
    "refuse": {},
    "structured": {},
    "picture": {},
    "large": {},
    "die": {},
    "hang": {},
    "grandchild": {},
}
BAD_TOOLS = [
    {"name": "dotted.name", "inputSchema": {"type": "object"}},
    {"name": "x" * 64, "inputSchema": {"type": "object"}},
    {"name": "lookahead", "inputSchema": {"type": "object", "properties": {"a": {"pattern": "(?=a)"}}}},
]


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(said, **more):
    return {"content": [{"type": "text", "text": said}], **more}


def call(name, arguments):
    if name == "echo":
        return text(arguments["text"])
    if name == "environment":
        return text(json.dumps(dict(os.environ), sort_keys=True))
    if name == "read":
        return text(open(arguments["path"]).read())
    if name == "connect":
        socket.create_connection(("127.0.0.1", arguments["port"]))
        return text("connected")
    if name == "fail":
        return text("it did not work", isError=True)
    if name == "structured":
        return {"content": [], "structuredContent": {"b": 1, "a": [2.0]}}
    if name == "picture":
        return {"content": [{"type": "text", "text": "see"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}]}
    if name == "large":
        return text("x" * (5 << 20))
    if name == "grandchild":
        child = subprocess.Popen(["sleep", "600"])
        return text(f"{os.getpid()} {child.pid}")
    if name == "die":
        os._exit(7)
    raise KeyError(name)


def answer(message):
    method, params = message["method"], message.get("params", {})
    if method == "server/discover" and MODE == "newest":
        return {
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            "ttlMs": 0,
            "cacheScope": "private",
        }
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "test", "version": "1"},
        }
    if method == "tools/list":
        if MODE == "endless-list":
            return {"tools": [], "nextCursor": "again"}
        tools = [
            {"name": name, "description": name, "inputSchema": {"type": "object", "properties": properties}}
            for name, properties in TOOLS.items()
        ]
        return {"tools": tools + BAD_TOOLS}
    return call(params["name"], params.get("arguments") or {})


if MODE == "flood":
    sys.stderr.write("noise\n" * 500_000)
if MODE == "garbage":
    sys.stdout.write("this is no JSON\n{}\n" * 100 + "z" * (5 << 20) + "\n")
if MODE == "stubborn":
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print(os.getpid(), file=open("pid", "w"))

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or MODE == "mute":
        continue
    unknown = "initialize" if MODE == "newest" else "server/discover"
    if message["method"] == unknown:
        send({"id": message["id"], "error": {"code": -32601, "message": "no such method"}})
        continue
    if message.get("params", {}).get("name") == "hang":
        continue
    if message.get("params", {}).get("name") == "refuse":
        send({"id": message["id"], "error": {"code": -32602, "message": "no such thing"}})
        continue
    try:
        send({"id": message["id"], "result": answer(message)})
    except (OSError, KeyError) as fault:
        send({"id": message["id"], "result": text(type(fault).__name__, isError=True)})

while MODE == "stubborn":
    signal.pause()
