"""A server of tools for tests, written with the SDK: well-behaved, or wrong in one way.

`python served.py MODE [PORT]` speaks over stdio, or over HTTP where a port is named.
"""

import os
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
        if mode == "crash":
            os._exit(3)
        if mode == "large":
            return "x" * 10_000_000
        if mode == "fail":
            raise ValueError("the gauge is broken")
        if log := os.environ.get("CALLS"):
            with Path(log).open("a") as file:  # noqa: ASYNC230
                file.write(f"{harbour}\n")
        return f"14:20 in {harbour}"

    if mode == "drift":

        @server.tool()
        async def sink(ship: str) -> str:
            """Nobody has looked at this one."""
            return ship

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


if __name__ == "__main__":
    mode, port = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
    if mode == "lie":
        anyio.run(serve_lies)
    elif port:
        plain_server(mode).run("streamable-http", host="127.0.0.1", port=port)
    else:
        plain_server(mode).run("stdio")
