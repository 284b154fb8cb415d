"""The shipped command serving in processes of its own: many workers, revocation, ``kill -9``, an orderly end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
import time
from collections import Counter

import httpx2
import pytest

from normata.core.db.database import Database
from normata.records.kinds import Label
from tests import stored
from tests.conftest import MakeToken
from tests.core.http.serving.processes import PATIENCE, Serve, run, wait_for
from tests.databases import on_both
from tests.server import PLAIN
from tests.world import ALPHA, ARCHIVED, EARLIER


def archive(database: Database, count: int) -> list[str]:
    """Load so many archived labels of alpha, and return their ids."""
    ids = [f"label-{number:04}" for number in range(count)]
    stored.load(
        database,
        {
            "labels": [
                {"id": row_id, "organizationId": ALPHA, "name": row_id, "createdAt": EARLIER, "archivedAt": ARCHIVED}
                for row_id in ids
            ]
        },
    )
    return ids


def restored(database: Database) -> set[str]:
    return {row["id"] for row in stored.rows(database, Label, organization_id=ALPHA) if row["archived_at"] is None}


def events(database: Database) -> Counter[str]:
    """How many audit events there are of each record."""
    return Counter(row["entity_id"] for row in stored.events(database))


@pytest.mark.long
@on_both
@pytest.mark.parametrize("workers", [1, 4])
def test_of_many_at_once_exactly_one_restores_each_record(
    serve: Serve, database: Database, make_token: MakeToken, workers: int
) -> None:
    """Two hundred restores of fifty records at the same time: fifty succeed, the others are told why not."""
    ids, token = archive(database, 50), make_token("editor")
    server = serve(workers)

    async def restore_all() -> list[tuple[str, int, str]]:
        limits = httpx2.Limits(max_connections=200)
        async with httpx2.AsyncClient(base_url=server.address, limits=limits, timeout=PATIENCE, verify=PLAIN) as client:

            async def restore(row_id: str) -> tuple[str, int, str]:
                response = await client.post(f"/labels/{row_id}/restore/", headers={"Authorization": f"Bearer {token}"})
                return row_id, response.status_code, response.json().get("code", "")

            return await asyncio.gather(*(restore(row_id) for row_id in ids * 4))

    answers = asyncio.run(restore_all())
    assert Counter(answer[1:] for answer in answers) == {(200, ""): 50, (409, "not_archived"): 150}
    assert Counter(row_id for row_id, status, _ in answers if status == 200) == Counter(ids)
    assert set(ids) <= restored(database)
    assert events(database) == Counter(ids)
    assert token not in server.log
    assert server.log.count('"status":200') >= 50, "the log that was searched is one"


@on_both
def test_a_token_revoked_elsewhere_is_refused_at_once_by_all_workers(
    serve: Serve, database: Database, database_url: str, make_token: MakeToken
) -> None:
    token = make_token("editor")
    (row,) = stored.tokens(database)
    server = serve(2)

    def ask() -> int:
        """On a connection of its own, so that any of the workers may take it."""
        response = httpx2.get(
            f"{server.address}/notifications/?organizationId={ALPHA}",
            headers={"Authorization": f"Bearer {token}"},
            verify=PLAIN,
        )
        return response.status_code

    assert {ask() for _ in range(40)} == {200}
    revoked = run(database_url, "token", "revoke", row["id"])
    assert revoked.returncode == 0, revoked.stderr
    assert {ask() for _ in range(40)} == {401}
    assert token not in server.log + revoked.stdout + revoked.stderr


@pytest.mark.long
@on_both
def test_what_was_acknowledged_survives_kill_9(
    serve: Serve, database: Database, database_url: str, make_token: MakeToken
) -> None:
    """All processes are killed in the middle of a stream of restores; nothing that was answered with 200 is lost."""
    ids, token = archive(database, 1_000), make_token("editor")
    headers = {"Authorization": f"Bearer {token}"}
    server = serve(2)
    acknowledged: list[str] = []
    enough = threading.Event()

    def stream(own: list[str]) -> None:
        with httpx2.Client(base_url=server.address, timeout=PATIENCE, verify=PLAIN) as client:
            for row_id in own:
                try:
                    response = client.post(f"/labels/{row_id}/restore/", headers=headers)
                except httpx2.TransportError:
                    return
                assert response.status_code == 200, response.text
                assert response.json()["archivedAt"] is None
                acknowledged.append(row_id)
                if len(acknowledged) >= 60:
                    enough.set()

    threads = [threading.Thread(target=stream, args=(ids[start::4],)) for start in range(4)]
    for thread in threads:
        thread.start()
    assert enough.wait(PATIENCE)
    server.kill()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert 60 <= len(acknowledged) < len(ids), "it was killed in the middle"

    checked = run(database_url, "check")
    assert checked.returncode == 0, checked.stderr
    again = serve(1)
    live = restored(database) & set(ids)
    assert set(acknowledged) <= live
    assert events(database) == Counter(live), "one audit event for each record that is back, and none else"
    with httpx2.Client(base_url=again.address, headers=headers, timeout=PATIENCE, verify=PLAIN) as client:
        for row_id in acknowledged[:10]:
            response = client.post(f"/labels/{row_id}/restore/")
            assert (response.status_code, response.json()["code"]) == (409, "not_archived")
        assert client.post(f"/labels/{ids[-1]}/restore/").status_code == (409 if ids[-1] in live else 200)
    assert token not in again.log


@on_both
@pytest.mark.parametrize(("workers", "number"), [(1, signal.SIGTERM), (2, signal.SIGINT)], ids=str)
def test_a_signal_ends_the_server_in_order(
    serve: Serve, database: Database, make_token: MakeToken, workers: int, number: signal.Signals
) -> None:
    """In the middle of a stream of restores: each is answered or not done, and then no process is left."""
    ids, token = archive(database, 500), make_token("editor")
    server = serve(workers)
    answered: list[str] = []
    enough = threading.Event()

    def stream() -> None:
        with httpx2.Client(base_url=server.address, timeout=PATIENCE, verify=PLAIN) as client:
            for row_id in ids:
                try:
                    response = client.post(f"/labels/{row_id}/restore/", headers={"Authorization": f"Bearer {token}"})
                except httpx2.TransportError:
                    return
                if response.status_code == 200:
                    answered.append(row_id)
                if len(answered) >= 20:
                    enough.set()
                    time.sleep(0.005)  # or all is done before the signal comes, on a busy machine

    thread = threading.Thread(target=stream)
    thread.start()
    assert enough.wait(PATIENCE)
    os.kill(server.process.pid, number)
    assert server.process.wait(PATIENCE) == 0, server.log
    thread.join(PATIENCE)
    assert not thread.is_alive()
    wait_for(lambda: not server.alive())
    assert 20 <= len(answered) < len(ids), "it was ended in the middle"
    assert restored(database) & set(ids) == set(answered)
    assert events(database) == Counter(answered)
    assert "Traceback" not in server.log
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"{server.address}/livez", verify=PLAIN)


@on_both
def test_ids_that_look_encoded_are_decoded_once(serve: Serve, database: Database, make_token: MakeToken) -> None:
    """What the server makes of an address is what was sent, and what is no UTF-8 is not found."""
    odd = ["%2F", "%2e%2e", "%25", "a/b", "a?b", "..", "größe ☃", "a/restore/"]
    stored.load(
        database,
        {"labels": [{"id": row_id, "organizationId": ALPHA, "name": "x", "archivedAt": ARCHIVED} for row_id in odd]},
    )
    token = make_token("editor")
    server = serve(1)
    host = ("127.0.0.1", server.port)
    for row_id in odd:
        encoded = "".join(f"%{byte:02X}" for byte in row_id.encode())
        status, body = raw_post(host, f"/labels/{encoded}/restore/", token)
        assert (status, json.loads(body)["id"]) == (200, row_id)
    for encoded in ("%FF", "%ED%A0%80", "%00", "%zz", "%", "x" * 5_000):
        status, body = raw_post(host, f"/labels/{encoded}/restore/", token)
        assert status in (400, 404), body
        if status == 404:
            assert json.loads(body)["code"] == "not_found"
    assert "Traceback" not in server.log
    assert "internal_error" not in server.log


def raw_post(host: tuple[str, int], path: str, token: str) -> tuple[int, str]:
    """A request written by hand, so that no client tidies up its address."""
    with socket.create_connection(host, timeout=PATIENCE) as connection:
        head = f"POST {path} HTTP/1.1\r\nHost: normata\r\nAuthorization: Bearer {token}\r\n"
        connection.sendall(f"{head}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    top, _, body = answer.partition(b"\r\n\r\n")
    return int(top.split()[1]), body.decode()
