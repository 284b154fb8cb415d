"""Spans of requests and of the database, with OpenTelemetry; and nothing of it where nobody asks for it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from normata.records.kinds import Label
from tests.core.http.serving.test_tracing import CHEAP
from tests.databases import on_both, path_of
from tests.served import Headers, Served, refused, served
from tests.world import ALPHA, record_id

QUERY = {"organizationId": ALPHA, "search": "secret words"}
LABEL = f"/labels/{record_id(Label, 'archived')}/restore/"
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"

Spans = Callable[[], Sequence[ReadableSpan]]


def recorded(service: Served) -> Spans:
    """What the shipped application makes of spans from now on, kept in memory."""
    kept = InMemorySpanExporter()
    assert service.app.tracing is not None
    service.app.tracing.provider.add_span_processor(SimpleSpanProcessor(kept))
    return kept.get_finished_spans


@pytest.fixture
def traced(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """The application with tracing, which sends nothing anywhere."""
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    with served(database_url, tracing=True) as service:
        yield service


def attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def by_kind(spans: Sequence[ReadableSpan], kind: SpanKind) -> list[ReadableSpan]:
    return [span for span in spans if span.kind is kind]


def hexadecimal(number: int, digits: int) -> str:
    return f"{number:0{digits}x}"


@on_both
def test_a_request_and_what_it_asks_of_the_database(traced: Served) -> None:
    headers = traced.bearer("editor") | {"traceparent": TRACEPARENT, "tracestate": "vendor=1", "X-Request-Id": "mine"}
    spans = recorded(traced)
    assert traced.client.post(LABEL, headers=headers).status_code == 200
    (request,) = by_kind(spans(), SpanKind.SERVER)
    assert request.name == "POST /labels/{id}/restore"
    assert request.context is not None
    assert hexadecimal(request.context.trace_id, 32) == TRACE
    assert request.context.trace_state.to_header() == "vendor=1"
    assert request.parent is not None
    assert hexadecimal(request.parent.span_id, 16) == PARENT
    assert attributes(request) == {
        "http.request.method": "POST",
        "http.route": "/labels/{id}/restore",
        "http.response.status_code": 200,
        "url.scheme": "http",
        "url.path": LABEL,
        "normata.request_id": "mine",
    }
    asked = by_kind(spans(), SpanKind.CLIENT)
    system = "sqlite" if "sqlite" in traced.url else "postgresql"
    assert [span.name for span in asked] == [f"look_up {system}", f"write {system}"]
    assert all(span.parent is not None and span.parent.span_id == request.context.span_id for span in asked)
    assert all(attributes(span)["db.system.name"] == system for span in asked)


def test_a_request_without_a_trace_begins_one_and_a_kept_page_asks_for_a_token_only(traced: Served) -> None:
    headers = traced.bearer("viewer")
    spans = recorded(traced)
    for _ in range(2):
        assert traced.client.get("/controls/", params=QUERY, headers=headers).status_code == 200
    first, second = by_kind(spans(), SpanKind.SERVER)
    assert first.parent is second.parent is None
    assert first.context is not None
    assert second.context is not None
    assert first.context.trace_id != second.context.trace_id
    assert attributes(first)["normata.organization_id"] == ALPHA
    asked = [span.name for span in spans() if span.context and span.context.trace_id == second.context.trace_id]
    assert asked == ["look_up sqlite", "GET /controls"]


def test_a_line_of_the_log_names_the_span(
    database_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    with served(database_url, tracing=True, log_level="info") as service:
        spans = recorded(service)
        service.client.get("/controls/")
        service.client.get("/controls/", headers={"traceparent": TRACEPARENT})
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    contexts = [span.context for span in by_kind(spans(), SpanKind.SERVER)]
    assert [(line["trace_id"], line["parent_id"]) for line in lines] == [
        (hexadecimal(context.trace_id, 32), hexadecimal(context.span_id, 16)) for context in contexts if context
    ]
    assert lines[1]["trace_id"] == TRACE


@pytest.mark.parametrize("traceparent", ["", "00", f"ff-{TRACE}-{PARENT}-01", f"00-{'0' * 32}-{PARENT}-01", "x" * 9999])
def test_a_bad_traceparent_begins_a_trace(traceparent: str, traced: Served) -> None:
    spans = recorded(traced)
    assert traced.client.get(CHEAP, headers={"traceparent": traceparent}).status_code == 200
    (request,) = spans()
    assert request.parent is None


def test_the_client_may_have_no_span_recorded(traced: Served) -> None:
    """Its flag says so; the ids go on all the same."""
    spans = recorded(traced)
    assert traced.client.get(CHEAP, headers={"traceparent": TRACEPARENT[:-1] + "0"}).status_code == 200
    assert spans() == ()


def test_nothing_that_people_sent_is_in_a_span_but_the_path(traced: Served) -> None:
    headers = traced.bearer("viewer") | {"User-Agent": "a secret agent", "Accept-Language": "secret"}
    spans = recorded(traced)
    traced.client.get("/controls/", params=QUERY, headers=headers)
    traced.client.post("/labels/x/restore/", headers=headers, content=b"secret")
    told = "".join(span.to_json() for span in spans())
    assert "secret" not in told
    assert headers["Authorization"].removeprefix("Bearer ") not in told


@pytest.mark.parametrize(
    ("method", "path", "name", "status"),
    [
        ("GET", "/controls/", "GET /controls", 401),
        ("GET", "/nothing/4711", "GET", 404),
        ("BREW", "/controls/", "BREW /controls", 405),
        ("BREW", "/nothing/", "HTTP", 404),
        ("GET", "/", "GET /", 303),
    ],
)
def test_names_are_few(method: str, path: str, name: str, status: int, traced: Served) -> None:
    spans = recorded(traced)
    answer = traced.client.request(method, path, follow_redirects=False)
    (request,) = by_kind(spans(), SpanKind.SERVER)
    assert (answer.status_code, attributes(request)["http.response.status_code"]) == (status, status)
    assert request.name == name.replace("BREW", "HTTP")
    assert request.status.status_code is StatusCode.UNSET


def test_a_failure_is_one(traced: Served) -> None:
    headers: Headers = traced.bearer("editor")
    spans = recorded(traced)
    path_of(traced.database).rename(Path(f"{path_of(traced.database)}.away"))
    refused(traced.client.post(LABEL, headers=headers), 503, "unavailable")
    look_up, request = spans()
    assert (look_up.status.status_code, attributes(look_up)["error.type"]) == (StatusCode.ERROR, "Unavailable")
    assert (request.status.status_code, attributes(request)["error.type"]) == (StatusCode.ERROR, "unavailable")
    assert attributes(request)["normata.problem"] == "unavailable"
    assert not look_up.events, "what an exception says may be what people wrote"


def test_what_the_domain_refuses_is_no_failure(traced: Served) -> None:
    headers = traced.bearer("editor")
    spans = recorded(traced)
    refused(traced.client.post("/labels/nothing/restore/", headers=headers), 404, "not_found")
    assert {span.status.status_code for span in spans()} == {StatusCode.UNSET}


def test_probes_leave_no_spans(traced: Served) -> None:
    spans = recorded(traced)
    for path in ("/livez", "/livez/", "/readyz", "/metrics"):
        assert traced.client.get(path).status_code == 200
    assert spans() == ()


def test_the_environment_names_the_service(traced: Served, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert traced.app.tracing is not None
    assert traced.app.tracing.provider.resource.attributes["service.name"] == "normata"
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,deployment.environment.name=test")
    with served(database_url, tracing=True) as named:
        assert named.app.tracing is not None
        found = named.app.tracing.provider.resource.attributes
        assert (found["service.name"], found["deployment.environment.name"]) == ("other", "test")


def test_the_standard_switch_turns_it_off(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with served(database_url, tracing=True) as service:
        spans = recorded(service)
        assert service.client.get(CHEAP).status_code == 200
        assert spans() == ()


# --- Without the setting

IMPORTED = """
import sys
from starlette.testclient import TestClient
from normata.app import create_app
from normata.settings import Settings
with TestClient(create_app(Settings(log_level="error"))) as client:
    assert client.get("/notifications/texts/").status_code == 200
print(*sys.modules)
"""


@pytest.mark.long
@pytest.mark.parametrize("asked", [False, True])
def test_it_is_imported_only_where_it_is_asked_for(asked: bool, database_url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED],
        env={"NORMATA_DATABASE_URL": database_url, "NORMATA_TRACING": str(asked), "OTEL_TRACES_EXPORTER": "none"}
        | {"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    parts = ("opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter", "normata.core.http.tracing")
    found = {part for part in parts for module in done.stdout.split() if module.startswith(part)}
    assert found == (set(parts) if asked else set())


def test_no_span_has_the_secret_of_a_calendar(traced: Served) -> None:
    made = traced.client.post("/me/calendar/", headers=traced.bearer("viewer")).json()["url"]
    path = made.removeprefix("http://localhost:8000")
    secret = path.removeprefix("/calendar/").removesuffix(".ics")
    spans = recorded(traced)
    for sent, status in ((path, 200), (path.replace("/c", "/%63"), 200), (f"{path}x", 404), (f"{path}/more/", 404)):
        assert traced.client.get(sent).status_code == status
    requests = by_kind(spans(), SpanKind.SERVER)
    assert [attributes(one)["url.path"] for one in requests] == ["/calendar/-/"] * 4
    assert requests[0].name == "GET /calendar/{name}"
    assert secret not in "".join(one.to_json() for one in spans())
