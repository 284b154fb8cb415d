"""A risk keeps the ratings that it had."""

from __future__ import annotations

from normata.records.assurance import Risk
from tests.records.living import change
from tests.risks.rating import add, read
from tests.served import Served


def test_reassessing_keeps_the_earlier_values(service: Served) -> None:
    editor = service.bearer("editor")
    risk = add(service, inherent=(4, 4), residual=(3, 3))
    change(service, Risk, risk, editor, name="Another name")
    change(service, Risk, risk, editor, residualProbability=1, targetProbability=1, targetImpact=2)
    change(service, Risk, risk, editor, residualProbability=None)
    service.client.post(f"/risks/{risk}/archive/", headers=editor)
    last, second, first = read(service, f"/risks/{risk}/ratings/")["items"]
    assert (first["residualProbability"], first["residualImpact"], first["levels"]["residual"]) == (3, 3, "MEDIUM")
    assert first["levels"] == {"inherent": "CRITICAL", "residual": "MEDIUM", "target": None}
    assert (second["residualProbability"], second["levels"]["target"]) == (1, "LOW")
    assert (last["residualProbability"], last["until"]) == (None, None)
    assert (first["until"], second["until"]) == (second["since"], last["since"])
