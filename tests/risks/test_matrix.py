"""The risk matrix, now and on a day."""

from __future__ import annotations

import time
from typing import Any

import pytest

from normata.core.db.types import now
from normata.records.assurance import Risk
from tests.records.living import change, make
from tests.served import Served, refused
from tests.world import ALPHA


def _matrix(service: Served, user: str = "viewer", **query: str) -> dict[str, Any]:
    answer = service.client.get("/risk-matrix/", params={"organizationId": ALPHA} | query, headers=service.bearer(user))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _counts(matrix: dict[str, Any]) -> dict[tuple[int, int], int]:
    return {(cell["probability"], cell["impact"]): cell["count"] for cell in matrix["cells"] if cell["count"]}


def _moment() -> str:
    """A moment after all that was done, and before all that is to come: both have milliseconds."""
    time.sleep(0.002)
    moment = now()
    time.sleep(0.002)
    return moment


def _clear(service: Served) -> None:
    service.sql("UPDATE risk SET status = 'CLOSED'")


def _add(service: Served, probability: int | None, impact: int | None, of: str = "residual", **values: Any) -> str:
    rated = {f"{of}Probability": probability, f"{of}Impact": impact}
    answer = make(service, Risk, service.bearer("editor"), name="Risk", **rated | values)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def test_it_counts_live_open_risks_by_their_ratings(service: Served) -> None:
    _clear(service)
    for probability, impact in ((1, 5), (1, 5), (5, 1), (None, 3), (3, None), (None, None)):
        _add(service, probability, impact)
    _add(service, 2, 2, status="CLOSED")
    archived = _add(service, 2, 2)
    service.client.post(f"/risks/{archived}/archive/", headers=service.bearer("editor"))
    _add(service, 4, 4, of="target")
    matrix = _matrix(service)
    assert [(cell["impact"], cell["probability"]) for cell in matrix["cells"]] == [
        (impact, probability) for impact in range(1, 6) for probability in range(1, 6)
    ]
    assert _counts(matrix) == {(1, 5): 2, (5, 1): 1}
    assert (matrix["of"], matrix["unrated"], matrix["total"]) == ("residual", 4, 7)
    assert matrix["levels"] == {"LOW": 0, "MEDIUM": 3, "HIGH": 0, "CRITICAL": 0}
    assert _counts(_matrix(service, of="target")) == {(4, 4): 1}
    assert _matrix(service, of="target")["levels"]["CRITICAL"] == 1
    assert _counts(_matrix(service, of="inherent")) == {}


def test_the_levels_are_the_organizations(service: Served) -> None:
    usual = [cell["level"] for cell in _matrix(service)["cells"]]
    assert usual == [
        *("LOW", "LOW", "LOW", "LOW", "MEDIUM"),
        *("LOW", "LOW", "MEDIUM", "MEDIUM", "HIGH"),
        *("LOW", "MEDIUM", "MEDIUM", "HIGH", "CRITICAL"),
        *("LOW", "MEDIUM", "HIGH", "CRITICAL", "CRITICAL"),
        *("MEDIUM", "HIGH", "CRITICAL", "CRITICAL", "CRITICAL"),
    ]
    levels = [["LOW"] * 4 + ["CRITICAL"]] * 4 + [["HIGH"] * 5]
    headers = service.bearer("admin")
    answer = service.client.patch(f"/organizations/{ALPHA}/", json={"riskLevels": levels}, headers=headers)
    assert (answer.status_code, answer.json()["riskLevels"]) == (200, levels)
    assert [cell["level"] for cell in _matrix(service)["cells"]] == [level for row in levels for level in row]
    for wrong in (levels[:4], [*levels[:4], ["HIGH"] * 4], [*levels[:4], ["high"] * 5]):
        answer = service.client.patch(f"/organizations/{ALPHA}/", json={"riskLevels": wrong}, headers=headers)
        refused(answer, 400, "validation")
    answer = service.client.patch(f"/organizations/{ALPHA}/", json={"riskLevels": None}, headers=headers)
    assert answer.json()["riskLevels"] is None
    assert [cell["level"] for cell in _matrix(service)["cells"]] == usual


def test_it_is_known_of_a_day(service: Served) -> None:
    _clear(service)
    risk = _add(service, 4, 5)
    before = _moment()
    editor = service.bearer("editor")
    change(service, Risk, risk, editor, residualProbability=2)
    between = _moment()
    service.client.post(f"/risks/{risk}/archive/", headers=editor)
    assert _counts(_matrix(service, asOf=before)) == {(4, 5): 1}
    assert _counts(_matrix(service, asOf=between)) == {(2, 5): 1}
    assert _counts(_matrix(service)) == {}


@pytest.mark.parametrize("query", [{"of": "now"}, {"asOf": "2999-01-01"}, {"asOf": "2000-01-01"}])
def test_what_it_refuses(query: dict[str, str], service: Served) -> None:
    answer = service.client.get(
        "/risk-matrix/", params={"organizationId": ALPHA} | query, headers=service.bearer("viewer")
    )
    refused(answer, 400, "validation")
