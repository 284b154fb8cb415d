"""Clients over a real server: that of the package, in both ways that it can begin, and one that writes JSON-RPC."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from normata.records.assurance import Risk
from tests.mcp.raw import RawClient
from tests.served import Headers, served
from tests.server import serving
from tests.world import ALPHA, record_id

LIVE = record_id(Risk, "live")


@pytest.fixture
def server(database_url: str) -> Iterator[tuple[str, Headers]]:
    """A server with two workers, and the header of an editor there."""
    with served(database_url) as service:
        headers = service.bearer("editor", scope="write")
    with serving(database_url, workers=2) as base:
        yield base, headers


async def _work(base: str, headers: Headers, mode: str) -> dict[str, Any]:
    """Find a risk, read it, and change it: what was shown, and what was read afterwards."""
    async with (
        httpx2.AsyncClient(headers=headers, verify=False) as http,
        Client(streamable_http_client(f"{base}/mcp", http_client=http), mode=mode) as client,
    ):
        tools = (await client.list_tools()).tools
        found = await client.call_tool("search", {"ids": [LIVE], "kinds": ["risks"]})
        (item,) = found.structured_content["data"]["items"]
        about = {"kind": "risks", "id": item["id"]}
        shown = await client.call_tool("change", about | {"values": {"name": f"By {mode}"}})
        confirmation = shown.structured_content["confirmation"]
        done = await client.call_tool(
            "change", about | {"values": {"name": f"By {mode}"}, "confirmation": confirmation}
        )
        assert not done.is_error
        read = await client.call_tool("read", about)
        return {"tools": tools, "shown": shown.structured_content["data"], "read": read.structured_content["data"]}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_client_of_the_package(server: tuple[str, Headers], mode: str) -> None:
    found = asyncio.run(_work(*server, mode))
    assert 6 < len(found["tools"]) <= 12
    (change,) = (one for one in found["shown"]["changes"] if one["kind"] == "risks")
    assert change["after"]["name"] == f"By {mode}" != change["before"]["name"]
    assert (found["read"]["id"], found["read"]["name"]) == (LIVE, f"By {mode}")


def test_a_client_that_writes_json_rpc(server: tuple[str, Headers]) -> None:
    base, headers = server
    with httpx2.Client(base_url=base) as http:
        client = RawClient(http, headers)
        begun = client.request(
            "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "raw", "version": "1"}
        )
        assert begun["protocolVersion"] == "2025-06-18"
        assert "data of the organization" in begun["instructions"]
        assert client.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).status_code == 202
        comment = {"kind": "risks", "id": LIVE, "text": "Seen."}
        written = client.confirmed("comment", **comment)
        read = client.call("read", kind="comments", query={"kind": "risks", "id": LIVE})
        assert [one["id"] for one in read.data["items"]].count(written.data["id"]) == 1
        over_http = http.get(f"/comments/{written.data['id']}/", params={"organizationId": ALPHA}, headers=headers)
        assert over_http.json() == written.data


@pytest.mark.long
def test_the_application_does_not_import_the_package() -> None:
    """It takes 30 MiB and a third of a second, so it is imported with the first request."""
    script = "import sys, normata.app; print({'mcp', 'mcp_types'} & sys.modules.keys())"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
