"""The pages of the shipped server."""

from __future__ import annotations

import json
from pathlib import Path

from tests.server import serving


def test_serve_warns_where_nobody_can_sign_in(sqlite_url: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serving(sqlite_url, log=log, settings={"NORMATA_PUBLIC_URL": "http://normata.example.org"}):
        pass
    sentence, *lines = log.read_text("utf-8").splitlines()
    assert sentence.startswith("warning: nobody can sign in: NORMATA_PUBLIC_URL is http://normata.example.org")
    (event,) = [one for one in map(json.loads, lines) if one["event"] == "unsafe_sign_in"]
    assert (event["level"], event["reason"]) == ("warning", sentence.removeprefix("warning: "))
