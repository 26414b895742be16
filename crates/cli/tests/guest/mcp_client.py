#!/usr/bin/env python3
"""A client of `nearmiss mcp` from another hand: the Python package mcp.

Usage: mcp_client.py NEARMISS DIRECTORY MACHINE COMMAND [ARGUMENT ...]
Lists the tools, diagnoses the command, rehearses the remedy of the first finding that is applied from outside, and
verifies that remedy in few pairs of runs with 40 times the command's last argument. The package validates each answer by the schema that the server declared for it.
Prints one JSON object: the tools, the answers, their sizes, and the messages of progress.
"""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def plain(result):
    """The result as it came over the wire."""
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


async def main(nearmiss, directory, machine, command):
    messages, sizes = [], []

    async def progress(_done, _whole, message):
        messages.append(message)

    async with stdio_client(StdioServerParameters(command=nearmiss, args=["mcp"], cwd=directory)) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            tools = plain(await session.list_tools())["tools"]

            async def call(name, **arguments):
                result = plain(await session.call_tool(name, arguments, progress_callback=progress))
                sizes.append(len(json.dumps(result)))
                if result.get("isError"):
                    sys.exit(f"{name} {arguments}: {result['content'][0]['text']}")
                return result["structuredContent"]

            diagnosed = await call("diagnose", command=command, machine=machine, cpus=1, within="0")
            finding = next(found for found in diagnosed["findings"] if found.get("verify"))
            rehearsed = await call("rehearse", remedy=finding["remedy"], run=diagnosed["run"])
            *begin, work = finding["verify"]["command"]
            longer = finding["verify"] | {"command": [*begin, str(40 * int(work))]}
            verified = await call("verify", pairs=8, time_limit="1s", against=diagnosed["run"], **longer)
            wrong = plain(await session.call_tool("verify", {"remedy": finding["remedy"]}))
    print(json.dumps({
        "tools": tools,
        "finding": finding,
        "rehearsed": rehearsed,
        "verified": verified,
        "wrong": wrong,
        "sizes": sizes,
        "messages": messages,
    }))


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
