"""Secrets of webhooks, and the paths of addresses, which let others write to receivers, are shown to nobody."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from normata.bundle.dumping import dump
from normata.bundle.instance import dump_everything
from tests import stored
from tests.core.http.test_tracing import recorded
from tests.webhooks.sending import Sending, sending_of
from tests.world import ALPHA

PATH = "secret-in-a-url"  # of the address of each receiver


@pytest.fixture
def sending(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sending]:
    """The service with a receiver, on each database, with all that it can say of itself."""
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    with sending_of(database_url, tracing=True, log_level="debug") as opened:
        yield opened


def keys_of(*made: dict[str, str]) -> list[str]:
    """The secrets of webhooks, without what all have in common."""
    return [one["secret"].removeprefix("whsec_") for one in made]


def test_secrets_are_not_in_the_database(sending: Sending) -> None:
    made = sending.create()
    sending.happen("One")
    rotated = sending.ask("POST", f"/webhooks/{made['id']}/rotate/")
    sending.ask("PATCH", f"/webhooks/{made['id']}/", {"url": f"{sending.receiver.url}&changed=true"})
    sending.run()
    everything = stored.everything(sending.service.database)
    assert not any(key in str(everything) for key in keys_of(made, rotated))
    del everything["webhook"]  # the address is needed as it is
    assert PATH not in str(everything)
    sending.ask("DELETE", f"/webhooks/{made['id']}/")
    assert PATH not in str(stored.everything(sending.service.database))


def test_secrets_and_paths_are_in_nothing_that_the_service_says(
    sending: Sending, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    service, spans = sending.service, recorded(sending.service)
    with capture_logs() as lines:
        made = sending.create(format="FULL")
        path = f"/webhooks/{made['id']}/"
        sending.happen("One")
        assert len(sending.run()) == 1
        rotated = sending.ask("POST", f"{path}rotate/")
        sending.ask("POST", f"{path}test/")
        # What fails: an answer, changes that are refused, and the end of the webhook.
        sending.receiver.answer = lambda _: (500, {})
        sending.happen("Two")
        assert len(sending.run()) == 1
        said = [
            service.client.request(method, there, json={"url": url}, headers=headers)
            for headers in (sending.headers, service.bearer("viewer"), {})
            for method, there in (("PATCH", path), ("POST", "/webhooks/"))
            for url in (f"https://user@receiver.example/{PATH}", f"https://10.0.0.1/{PATH}", f"no/{PATH}")
        ]
        assert {one.status_code for one in said} == {400, 401, 403}
        sending.receiver.answer = lambda _: (410, {})
        sending.ask("PATCH", path, {"actions": ["create"]})
        assert len(sending.run()) == 1
        assert not sending.one(made)["isActive"]
        query = {"organizationId": ALPHA}
        said += [
            service.client.get(there, params=query, headers=sending.headers)
            for there in ("/events/", "/events/log/", "/notifications/")
        ]
        said += [service.client.get(there) for there in ("/metrics", "/health/ready/")]
    sent = "".join(one.body.decode() for one in sending.receiver.got)
    bundle, whole = io.StringIO(), io.StringIO()
    service.database.read_now(lambda transaction: dump(transaction, ALPHA, bundle))
    service.database.read_now(lambda transaction: dump_everything(transaction, whole))
    texts = {
        "answers": "".join(one.text for one in said),
        "bodies": sent,
        "lines": str(lines) + caplog.text,
        "spans": "".join(one.to_json() for one in spans()),
        "bundle": bundle.getvalue(),
    }
    assert "webhook_disabled" in texts["lines"]
    assert all(made["id"] in texts[name] for name in ("answers", "lines", "spans"))
    for name, text in texts.items():
        assert PATH not in text, name
        assert not any(key in text for key in keys_of(made, rotated)), name
    # A dump of everything is a copy of the database: it has the address, and the secrets only encrypted.
    assert PATH in whole.getvalue()
    assert not any(key in whole.getvalue() for key in keys_of(made, rotated))
