"""A client of MCP without the package: it writes JSON-RPC itself, as clients in other languages do."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import httpx2

from tests.served import Headers

VERSION = "2025-06-18"
_CODE = re.compile(r".*\((\d{3}) (\w+)\)\.")


def result_of(response: httpx2.Response) -> dict[str, Any]:
    """The result in the response to a request with the id 1, which must be one."""
    assert response.status_code == 200, response.text
    answer = response.json()
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", 1)
    assert "error" not in answer, answer
    found: dict[str, Any] = answer["result"]
    return found


@dataclass(frozen=True)
class Outcome:
    """What a tool has answered: its data, its text, and of a refusal the status and code that HTTP would have."""

    content: dict[str, Any]
    text: str
    is_error: bool

    @classmethod
    def of(cls, response: httpx2.Response) -> Outcome:
        """What a response has, which must be that of a tool."""
        result = result_of(response)
        (part,) = result["content"]
        assert part["type"] == "text"
        return cls(result.get("structuredContent") or {}, part["text"], result.get("isError", False))

    @property
    def data(self) -> Any:
        """The data of the answer, which must be one."""
        assert not self.is_error, self.text
        return self.content["data"]

    @property
    def code(self) -> tuple[int, str]:
        """The status and the code: 200 and nothing of an answer."""
        if not self.is_error:
            return 200, ""
        match = _CODE.match(self.text)
        assert match is not None, self.text
        return int(match[1]), match[2]

    @property
    def confirmation(self) -> str:
        """The confirmation that it gives."""
        assert not self.is_error, self.text
        assert self.content["status"] == "confirmation_required"
        found: str = self.content["confirmation"]
        return found


@dataclass(frozen=True)
class RawClient:
    """Sends JSON-RPC to `/mcp` with the headers of a caller."""

    client: httpx2.Client
    headers: Headers

    def post(self, body: Any, **headers: str) -> httpx2.Response:
        """The answer to any body."""
        usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        usual |= {"MCP-Protocol-Version": VERSION} | self.headers
        sent = usual | {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client.post("/mcp", content=content, headers=sent)

    def request(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a method, which must succeed."""
        return result_of(self.post({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}))

    def send(self, tool: str, arguments: dict[str, Any]) -> httpx2.Response:
        """The response to a call of a tool."""
        call = {"name": tool, "arguments": arguments}
        return self.post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})

    def call(self, tool: str, **arguments: Any) -> Outcome:
        """What a tool answers."""
        return Outcome.of(self.send(tool, arguments))

    def confirmed(self, tool: str, **arguments: Any) -> Outcome:
        """What a tool answers once its change was shown and confirmed."""
        shown = self.call(tool, **arguments)
        return self.call(tool, **arguments, confirmation=shown.confirmation)
