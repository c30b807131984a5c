"""A server of tools for tests, written with the SDK: well-behaved, or wrong in one way.

`python served.py MODE [PORT]` speaks over stdio, or over HTTP where a port is named. `gate` notes calls in its folder
and ends none while a file `stuck` is there; `legacy` and `modern` speak one protocol, and note what they are asked.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp.server import MCPServer, Server
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool


def plain_server(mode: str) -> MCPServer:
    """A server whose tools are functions."""
    server = MCPServer("harbour")

    @server.tool()
    async def tide(harbour: str) -> str:
        """When the water in a harbour is high."""
        if mode == "hang":
            await anyio.sleep_forever()
        if mode == "gate":
            with Path("calls.log").open("a") as file:  # noqa: ASYNC230
                file.write("call\n")
            while Path("stuck").exists():  # noqa: ASYNC110, ASYNC240 (another process takes it away)
                await anyio.sleep(0.02)
        if mode == "crash":
            os._exit(3)
        if mode == "large":
            return "x" * 10_000_000
        if mode == "fail":
            raise ValueError("the gauge is broken")
        if log := os.environ.get("CALLS"):
            with Path(log).open("a") as file:  # noqa: ASYNC230
                file.write(f"{harbour}\n")
        if mode == "turncoat":
            server.add_tool(sink)
        return f"14:20 in {harbour}"

    async def sink(ship: str) -> str:
        """Nobody has looked at this one."""
        return ship

    if mode == "drift":
        server.add_tool(sink)

    return server


def lying_server() -> Server[Any]:
    """A server that returns something else than its schema says."""
    shape = {"type": "object", "properties": {"hour": {"type": "integer"}}, "required": ["hour"]}

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        given = {"type": "object", "properties": {"harbour": {"type": "string"}}, "required": ["harbour"]}
        return ListToolsResult(tools=[Tool(name="tide", description="lies", input_schema=given, output_schema=shape)])

    async def call_tool(context: Any, params: Any) -> CallToolResult:
        text = TextContent(type="text", text="late")
        return CallToolResult(content=[text], structured_content={"hour": "late"})

    return Server("liar", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve_lies() -> None:
    """Serve the lying server over stdio."""
    from mcp.server.stdio import stdio_server

    server = lying_server()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


SPEAKS = {"legacy": "server/discover", "modern": "initialize"}
"""What a server does not know that speaks one protocol alone: the handshake, or the one that came after it."""


def note_refusal(mode: str, message: Any) -> dict[str, Any] | None:
    """The answer to what a server of one protocol does not know; what it is asked is noted."""
    method = message.get("method", "") if isinstance(message, dict) else ""
    with Path(os.environ["METHODS"]).open("a") as log:
        print(method, file=log)
    if method != SPEAKS[mode]:
        return None
    error = {"code": -32601, "message": f"Method not found: {method}"}
    return {"jsonrpc": "2.0", "id": message.get("id"), "error": error}


def relay_stdio(mode: str) -> None:
    """A server that speaks one protocol alone over stdio: what it knows is passed on to one that speaks both."""
    behind = subprocess.Popen([sys.executable, __file__, "ok"], stdin=subprocess.PIPE)
    assert behind.stdin is not None
    for line in sys.stdin.buffer:
        if (refusal := note_refusal(mode, json.loads(line))) is not None:
            print(json.dumps(refusal), flush=True)
        else:
            behind.stdin.write(line)
            behind.stdin.flush()
    behind.stdin.close()
    behind.wait()


def one_protocol(app: Any, mode: str) -> Any:
    """The same application, which speaks one protocol alone."""

    async def filtered(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await app(scope, receive, send)
            return
        body = b""
        while True:
            part = await receive()
            body += part.get("body", b"")
            if not part.get("more_body"):
                break
        if (refusal := note_refusal(mode, json.loads(body))) is not None:
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 400, "headers": headers})
            await send({"type": "http.response.body", "body": json.dumps(refusal).encode()})
            return
        given = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Any:
            return given.pop() if given else await receive()

        await app(scope, again, send)

    return filtered


def serve_http(mode: str, port: int) -> None:
    """Serve over HTTP."""
    import uvicorn

    server = lying_server() if mode == "lie" else plain_server(mode)
    app = server.streamable_http_app()
    uvicorn.run(one_protocol(app, mode) if mode in SPEAKS else app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    mode, port = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
    if port:
        serve_http(mode, port)
    elif mode in SPEAKS:
        relay_stdio(mode)
    elif mode == "lie":
        anyio.run(serve_lies)
    else:
        plain_server(mode).run("stdio")
