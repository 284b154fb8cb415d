"""A name and an address are found however they are spelled, and nothing else is."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest

from normata.erasure.personal_data_scan import Called, PersonalDataScan, is_ambiguous

ANN = PersonalDataScan(Called(["Ann.Smith@Acme.example"], ["Ann Smith"]), {"auditor"})
ODD = PersonalDataScan(Called(["jürgen@weiß.example"], ["Jürgen Weiß", 'Joe "Jo" Doe', "王小明"]))
SHORT = PersonalDataScan(Called(["ann@acme.example"], [], ["Ann"]), {"auditor"})


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Ann Smith", "[erased]"),
        ("ANN  smith's laptop", "[erased]'s laptop"),
        ("by Ann\nSmith, Ann\u00a0Smith.", "by [erased], [erased]."),
        ("files/ann_smith/ann-smith.pdf", "files/[erased]/[erased].pdf"),
        ("\uff21\uff4e\uff4e Smith (full width)", "[erased] (full width)"),
        ("ask ann.smith@acme.EXAMPLE, or Ann", "ask [erased], or Ann"),
        ("<mailto:Ann.Smith%40acme.example>", "<mailto:[erased]>"),
        ("(ann.smith@acme.example).", "([erased])."),
        ("ann.smith@acme.example.pdf, Ann.Smith@acme.example.DOCX.", "[erased].pdf, [erased].DOCX."),
        ("Größe: Ann Smith", "Größe: [erased]"),
    ],
)
def test_they_are_taken_out(text: str, left: str) -> None:
    assert ANN.without(text) == left
    assert ANN.without(left) == left


@pytest.mark.parametrize(
    "text",
    [
        "Ann", "Smith, Ann", "Joann Smith", "Ann Smithers", "Ann B. Smith", "Ann and Smith",
        "We asked Ann. Smith left.",
        "joann.smith@acme.example.org", "x.ann.smith@acme.example", "x+ann.smith@acme.example", "", "[erased]",
        "ann.smith@acme.example-shop", "ann.smith@acme.example.pdfs", "ann.smith@acme.example.pdf.example",
    ],
)  # fmt: skip
def test_others_stay(text: str) -> None:
    """Of an address that only ends or begins like theirs, the name in it may go, but not the address as theirs."""
    assert "@" in text or ANN.without(text) == text
    assert ANN.without(text).count("@") == text.count("@")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("JÜRGEN WEISS und jürgen weiß", "[erased] und [erased]"),
        (unicodedata.normalize("NFD", "für Jürgen Weiß, später"), "für [erased], später"),
        ("JÜRGEN@WEISS.EXAMPLE", "[erased]"),
        ('says joe "jo" doe', 'says [erased]'),
        ("Jurgen Weiss, jurgen-weiss.pdf", "[erased], [erased].pdf"),
        ("由王小明批准", "由[erased]批准"),
    ],
)  # fmt: skip
def test_every_script_and_spelling(text: str, left: str) -> None:
    assert ODD.without(text) == left


def test_slugs_are_searched_as_slugs() -> None:
    assert ANN.without_slug("laptop-of-ann-smith-2") == "laptop-of-erased-2"
    assert ANN.without_slug("ann-smith-acme-example") == "erased"
    assert ANN.without_slug("laptop-of-joann-smith") == "laptop-of-joann-smith"
    assert ODD.without_slug("laptop-jurgen-weiss") == "laptop-erased"


def test_documents_keep_their_shape() -> None:
    document = {"a": [1, 2.5, None, True, {"Ann Smith": "x", "slug": "of-ann-smith"}], "b": "Ann Smith", "c": "Ann"}
    assert ANN.without_document(document) == {
        "a": [1, 2.5, None, True, {"[erased]": "x", "slug": "of-erased"}],
        "b": "[erased]",
        "c": "Ann",
    }
    assert ANN.without_document({"meta": "of-ann-smith-acme-example"}) == {"meta": "of-erased"}
    two = {"[erased]": 0, "Ann Smith": 1, "ann smith": 2}
    assert ANN.without_document(two) == {"[erased]": 0, "[erased] 2": 1, "[erased] 3": 2}


def test_a_single_word_goes_only_where_it_names_a_person() -> None:
    """It may be an ordinary word."""
    assert SHORT.without("Ann is here: ann@acme.example") == "Ann is here: [erased]"
    assert SHORT.without_person(" ANN ") == "[erased]"
    assert SHORT.without_person("Ann Lee") == "Ann Lee"
    told = {"params": {"restoredBy": "Ann", "name": "Ann"}, "auditor": "Ann"}
    assert SHORT.without_document(told) == {"params": {"restoredBy": "[erased]", "name": "Ann"}, "auditor": "[erased]"}
    assert SHORT.are_ambiguous_in("ask ANN.")
    assert not SHORT.are_ambiguous_in("annual")
    assert (is_ambiguous("Ann"), is_ambiguous(" Ann Lee")) == (True, False)


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize(
    ("value", "is_in"),
    [
        ({"after": {"name": "Jürgen\tWeiß"}}, True),
        ({"after": {"name": 'Joe "Jo" Doe'}}, True),
        ({"after": {"slug": "of-joe-jo-doe"}}, True),
        ({"after": {"name": "Jürgen", "other": "Weiß"}}, False),
    ],
)
def test_json_is_read_before_it_is_searched(value: Any, is_in: bool, ascii_only: bool) -> None:
    assert ODD.are_in_json(json.dumps(value, ensure_ascii=ascii_only)) == is_in


def test_a_name_without_letters_is_found_as_it_is() -> None:
    odd = PersonalDataScan(Called([], ["★ ☆"]))
    assert odd.may_be_in("★ ☆")
    assert odd.without("by ★ ☆!") == "by [erased]!"


def test_what_is_no_json_is_searched_as_text() -> None:
    assert ANN.are_in_json("{Ann Smith")
    assert not ANN.are_in_json("")
