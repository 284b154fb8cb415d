"""Files as the server sends them: all of one by itself, parts of it in pieces."""

from __future__ import annotations

import os
from hashlib import sha256

import httpx2
import pytest

from tests.conftest import MakeToken
from tests.core.http.serving.processes import Serve
from tests.server import PLAIN
from tests.world import ALPHA

CONTENT = os.urandom(1_500_001)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_file_is_sent_as_it_was(serve: Serve, make_token: MakeToken) -> None:
    headers = {"Authorization": f"Bearer {make_token('editor')}"}
    query = {"organizationId": ALPHA, "name": "a.bin"}
    with httpx2.Client(base_url=serve(1).address, headers=headers, verify=PLAIN) as asking:
        made = asking.post("/files/", params=query, content=CONTENT).json()
        where = f"/files/{made['id']}/content/?organizationId={ALPHA}"
        whole = asking.get(where)
        assert (whole.status_code, sha256(whole.content).hexdigest()) == (200, made["sha256"])
        assert whole.headers["content-length"] == str(len(CONTENT))
        assert whole.headers["content-security-policy"] == "sandbox; default-src 'none'"
        assert asking.get(where, headers={"Range": "bytes=5-1000004"}).content == CONTENT[5:1_000_005]
        head = asking.head(where)
        assert (head.content, head.headers["content-length"]) == (b"", str(len(CONTENT)))
        assert asking.get(where).content == CONTENT  # over the same connection
