"""In the console a questionnaire is written as text, used, copied, changed while nobody has it, and removed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from httpx2 import Response

from normata.console.app.questionnaire_text import is_writable, read, written
from normata.vendors.model import Questionnaire
from normata.vendors.questions import MAX_CHOICES, MAX_PARTS, MAX_QUESTIONS, Part, standard, unambiguous
from tests import stored
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA
from tests.console.browser import text_of
from tests.vendors.rows import PARTS

_FREE, _USED = "free-org-alpha", "used-org-alpha"
_TEXT = """
# Access
Do you review rights? [weight 3]

How often?
- Every year = 100
-Never=0

# Data
Where is our data? [text, weight 2]
"""


def _post(people: People, path: str, user: str = "editor", **fields: str) -> Response:
    return people[user].client.post(f"{ALPHA}{path}", data=fields, headers={"Sec-Fetch-Site": "same-origin"})


def _faults(content: str) -> list[tuple[int, str]]:
    return [(one.line, one.reason) for one in read(content).faults]


def test_a_text_is_read_as_parts_questions_and_choices() -> None:
    found = read(_TEXT)
    assert found.faults == []
    first, second = (part["questions"] for part in found.parts)
    assert [(one["id"], one["kind"], one["weight"]) for one in (*first, *second)] == [
        ("do-you-review-rights", "YES_NO", 3),
        ("how-often", "CHOICE", 1),
        ("where-is-our-data", "TEXT", 2),
    ]
    assert first[1]["choices"] == [{"text": "Every year", "score": 100}, {"text": "Never", "score": 0}]
    unambiguous([Part.model_validate(part) for part in found.parts])


@pytest.mark.parametrize("parts", [PARTS, standard()], ids=["own", "standard"])
def test_a_questionnaire_as_text_is_the_same_again(parts: Any) -> None:
    assert is_writable(parts)
    found = read(written(parts) + "\nAnd\u00e9?\nAnd\u00e9?\n\u4f55?\n", parts).parts
    assert found[:-1] == parts[:-1]
    assert [one["id"] for one in found[-1]["questions"][-3:]] == ["ande", "ande-2", "question"]
    [question, *_] = read("# A\nOne line").parts[0]["questions"]
    broken = [{"name": "A", "questions": [question | {"text": "Two\nlines"}]}]
    assert not is_writable(broken)


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("", 1, "no questions"),
        ("Why?", 1, "Before the first question"),
        ("#\nWhy?", 1, "has a name"),
        ("# A\n\n# B\nWhy?", 1, "has no questions"),
        ("# A\n- Yes = 3", 2, "below its question"),
        ("# A\nWhy? [wieght 3]", 2, "[wieght 3] is not known"),
        ("# A\nWhy? [weight 11]", 2, "[weight 11] is not known"),
        ("# A\n[text]", 2, "no words"),
        ("# A\nWhy?\n- One = 3", 2, "only one choice"),
        ("# A\nWhy?\n- One = 3\n- Two", 4, "ends with its score"),
        ("# A\nWhy?\n- One = 3\n- Two = 101", 4, "from 0 to 100"),
        ("# A\nWhy?\n- One = 3\n- One = 4\n- Two = 1", 4, "this choice already"),
        ("# A\nWhy? [text]\n- One = 3", 3, "has no choices"),
        (f"# {'A' * 201}\nWhy?", 1, "more than 200"),
        (f"# A\n{'w' * 1001}", 2, "more than 1000"),
        ("# A\nWhy?\n" * (MAX_PARTS + 1), 2 * MAX_PARTS + 1, "more than 20 parts"),
        ("# A\n" + "Why?\n" * (MAX_QUESTIONS + 1), MAX_QUESTIONS + 2, "more than 200 questions"),
        ("# A\nWhy?\n" + "".join(f"- {n} = 1\n" for n in range(MAX_CHOICES + 1)), MAX_CHOICES + 3, "20 choices"),
    ],
)
def test_faults_name_their_lines(content: str, line: int, reason: str) -> None:
    [(where, why), *_] = [one for one in _faults(content) if reason in one[1]]
    assert where == line, why


def test_one_is_written_previewed_changed_and_removed(people: People) -> None:
    shown = _post(people, "new-questionnaire/", name="", content="Why?", step="preview")
    assert (shown.status_code, "Line 1: Before the first question" in text_of(shown)) == (200, True)
    refused = _post(people, "new-questionnaire/", name="Ours", content="# A\nWhy? [maybe]", step="save")
    assert (refused.status_code, "Line 2: [maybe] is not known" in text_of(refused)) == (400, True)
    nameless = _post(people, "new-questionnaire/", name=" ", content=_TEXT, step="save")
    assert (nameless.status_code, 'id="fault-name"' in nameless.text) == (400, True)
    fields = {"name": "Ours", "content": _TEXT, "step": "save", "key": "k" * 43}
    first, again = (_post(people, "new-questionnaire/", **fields) for _ in range(2))
    assert first.headers["location"] == again.headers["location"]
    [row] = stored.rows(people.instance.database, Questionnaire, name="Ours")
    path = f"questionnaires/{row['id']}/"
    page = people["viewer"].get(f"{ALPHA}{path}")
    assert "Where is our data? A text, without a score Weight 2" in text_of(page)
    assert "change/" not in page.text
    form = people["editor"].get(f"{ALPHA}{path}change/").text
    [tag] = re.findall(r'name="tag" value="([^"]*)"', form)
    fields = {"name": "Ours, 2", "content": _TEXT + "Since when?", "step": "save", "tag": tag.replace("&#34;", '"')}
    assert _post(people, f"{path}change/", **fields).status_code == 303
    assert _post(people, f"{path}change/", **fields).status_code == 412  # it was filled with what was before
    changed = stored.row(people.instance.database, Questionnaire, row["id"])
    assert (changed["name"], changed["parts"][0]) == ("Ours, 2", row["parts"][0])
    assert _post(people, path, "viewer", step="remove").status_code == 403
    assert (
        _post(people, path, step="remove").headers["location"].endswith("/questionnaires/?done=questionnaire_removed")
    )
    assert stored.rows(people.instance.database, Questionnaire, id=row["id"]) == []


def test_a_used_one_is_copied_and_asks_with_the_same_ids(people: People) -> None:
    page = people["editor"].get(f"{ALPHA}questionnaires/{_USED}/")
    assert "so it stays as it is" in text_of(page)
    assert people["editor"].get(f"{ALPHA}questionnaires/{_USED}/change/").status_code == 303
    assert _post(people, f"questionnaires/{_USED}/", step="remove").status_code == 409
    refused = _post(people, f"questionnaires/{_USED}/change/", name="A", content=_TEXT, step="save")
    assert refused.status_code == 409
    for copied, parts in ((_USED, PARTS), ("standard", standard())):
        address = f"{ALPHA}new-questionnaire/?copies={copied}"
        assert "How often do you" in people["editor"].get(address).text
        fields = {"name": f"Copy of {copied}", "content": written(parts), "copies": copied, "step": "save"}
        assert _post(people, "new-questionnaire/", **fields).status_code == 303
        [row] = stored.rows(people.instance.database, Questionnaire, name=f"Copy of {copied}")
        assert row["parts"] == parts
    assert people["editor"].get(f"{ALPHA}new-questionnaire/?copies=used-org-beta").status_code == 404


def test_the_list_has_the_one_of_the_service_and_how_often_each_is_used(people: People) -> None:
    page = people["viewer"].get(f"{ALPHA}questionnaires/")
    assert "Security of vendors Comes with Normata 30 questions, 5 parts 0" in text_of(page)
    assert "questionnaireId=used-org-alpha" in page.text
    assert "30 questions" in text_of(people["viewer"].get(f"{ALPHA}standard-questionnaire/"))
    form = people["editor"].get(f"{ALPHA}new/vendor-assessments/?questionnaireId={_FREE}").text
    assert f'<option value="{_FREE}" selected>' in form
