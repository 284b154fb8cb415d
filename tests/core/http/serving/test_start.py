"""How the service starts: where it listens, what it says, and what it refuses."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from normata.core.http.server import AddressInUse, require_free_address
from tests.core.http.serving.processes import Processes, Serve, run, run_here, wait_for
from tests.server import PLAIN, reserved_port


@pytest.mark.long
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
def test_it_listens_on_a_name_or_an_address(serve: Serve, host: str) -> None:
    if host == "::1":
        try:
            require_free_address("::1", 0)
        except AddressInUse:
            pytest.skip("this machine has no IPv6")
    server = serve(1, host=host, installed=True)
    assert httpx2.get(f"{server.address}/livez", verify=PLAIN).status_code == 200


def test_each_line_of_the_log_is_json_and_one_says_where_it_serves(serve: Serve) -> None:
    server = serve(2)
    httpx2.get(f"{server.address}/nowhere", verify=PLAIN)
    wait_for(lambda: '"serving"' in server.log)
    lines = {line["event"]: line for line in map(json.loads, server.log.splitlines())}
    said = lines["serving"]
    assert (said["url"], said["workers"], said["level"]) == (server.address, 2, "info")
    assert "request" in lines


@pytest.mark.long
def test_it_accepts_connections_once_it_says_that_it_serves(sqlite_url: str, tmp_path: Path) -> None:
    server = Processes(sqlite_url, tmp_path / "server.log", 1, installed=True)
    try:
        wait_for(lambda: '"serving"' in server.log)
        socket.create_connection(("127.0.0.1", server.port)).close()
    finally:
        server.kill()


@pytest.mark.long
def test_in_text_it_says_so_in_a_sentence(serve: Serve) -> None:
    server = serve(1, installed=True, NORMATA_LOG_FORMAT="text")
    wait_for(lambda: f"serves {server.address}, documentation at /docs; stop with Ctrl-C" in server.log)
    assert any(line.startswith("Normata ") for line in server.log.splitlines())


# --- It does not start


@contextmanager
def taken_port() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def assert_sentence(ended: subprocess.CompletedProcess[str], code: int) -> None:
    """The command ended with this exit code and one sentence on standard error, and never said that it serves."""
    assert ended.returncode == code, ended.stderr
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert line.startswith("normata: ")


def test_a_port_in_use_is_told_in_a_sentence(sqlite_url: str) -> None:
    with taken_port() as port:
        ended = run(sqlite_url, "serve", "--port", str(port))
    assert_sentence(ended, 1)
    assert f"127.0.0.1:{port}" in ended.stderr


BAD_SETTINGS = {
    "NORMATA_PORT": "abc",
    "NORMATA_WORKERS": "0",
    "NORMATA_LOG_LEVEL": "loud",
    "NORMATA_DATABASE_TIMEOUT": "-1",
    "NORMATA_DATABASE_URL": "mysql://user:secret@localhost/normata",
}


@pytest.mark.parametrize("name", BAD_SETTINGS)
def test_a_bad_setting_is_told_in_a_sentence(sqlite_url: str, name: str) -> None:
    """Wrong usage, with the exit code 2; a password in a URL is not repeated."""
    call = run if name == "NORMATA_DATABASE_URL" else run_here  # the worker opens the database
    with reserved_port() as port:
        ended = call(sqlite_url, "serve", **({"NORMATA_PORT": str(port)} | {name: BAD_SETTINGS[name]}))
    assert_sentence(ended, 2)
    assert "secret" not in ended.stderr
    if name != "NORMATA_DATABASE_URL":
        assert name in ended.stderr


@pytest.mark.parametrize(
    "host",
    [
        pytest.param("192.0.2.1", id="an address of no machine (RFC 5737); nothing is sent to it"),
        pytest.param("nowhere.invalid", id="a name that never exists (RFC 6761)"),
        pytest.param("a..b", id="no name at all"),
        pytest.param("fe80::1%lo", id="an address of a single link"),
    ],
)
def test_a_host_that_cannot_be_listened_on_is_told_in_a_sentence(sqlite_url: str, host: str) -> None:
    with reserved_port() as port:
        ended = run_here(sqlite_url, "serve", "--host", host, "--port", str(port))
    assert_sentence(ended, 1)
    assert host in ended.stderr
