"""What the forms of records offer of a value that only a step sets."""

from __future__ import annotations

import pytest

from normata.records.base import Restorable
from normata.records.kinds import Finding
from normata.records.writing import values_by_steps
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Form, send
from tests.console.app.records.recording import bearer, made, new_of, page_of

_BY_STEPS = [(kind, *value) for kind in Restorable.kinds for value in values_by_steps(kind).items()]


@pytest.mark.parametrize(("kind", "place", "step"), _BY_STEPS)
def test_a_value_that_a_step_sets_is_offered_only_where_it_is_there(
    kind: type[Restorable], place: tuple[str, str], step: str, shared: People
) -> None:
    name, value = place
    option = f'<option value="{value}"'
    record = made(shared, kind, status="RESOLVED" if kind is Finding else "DRAFT")
    editor = shared["editor"]
    many = send(editor, Form(f"{ALPHA}change/{kind.path}/", "post"), selected=f"{kind.path}:{record}", step="choose")
    panel = page_of(kind, query=f"open={record}&sortColumn=updatedAt&sortDirection=desc")
    edit = page_of(kind, record, "edit")
    for page in (editor.get(new_of(kind)), many, editor.get(edit)):
        assert f'id="field-{name}"' in page.text
        assert option not in page.text
    quick = editor.get(panel).text.partition('id="quick"')[2]
    assert f'id="field-{name}"' in quick
    assert option not in quick
    answer = shared.instance.client.post(f"/{kind.path}/{record}{step}", json={}, headers=bearer(shared, "editor"))
    assert answer.status_code == 200, answer.text
    assert f"{option} selected" in editor.get(edit).text
    assert f"{option} selected" in editor.get(panel).text.partition('id="quick"')[2]
