"""What the glossary bans is in no name, and where a row says so in no text."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cells import each

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "normata"
GLOSSARY = ROOT / "docs" / "glossary.md"
DOCS = [*(ROOT / "docs").glob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]

_NAME = re.compile(r"[A-Za-z_]\w*")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_JINJA = re.compile(r"\{[{%].*?[%}]\}", re.DOTALL)
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_BACKTICKED = re.compile(r"`([^`]+)`")


class Banned(NamedTuple):
    """A banned term: its words, what to use instead, and whether prose may not have it either."""

    words: tuple[str, ...]
    instead: str
    in_prose: bool


class Piece(NamedTuple):
    """A name or a text, with its place."""

    path: Path
    line: int
    text: str
    is_name: bool


def banned(document: str) -> list[Banned]:
    """The rows of the second table of a glossary, one for each term."""
    terms = []
    for row in document.partition("## Banned words")[2].splitlines():
        cells = [cell.strip() for cell in row.strip().strip("|").split("|")]
        if not row.startswith("|") or cells[0] == "Banned" or not cells[0].strip("-"):
            continue
        assert len(cells) == 4, row
        assert cells[3] in {"names", "names and prose"}, row
        found = _BACKTICKED.findall(cells[0])
        assert found, row
        terms += [Banned(tuple(term.split()), cells[1], cells[3] != "names") for term in found]
    return terms


@cache
def words_of(name: str) -> list[str]:
    """The words of a name in snake case or camel case."""
    return [word.lower() for word in _HUMP.findall(name)]


def has_words(name: str, words: tuple[str, ...]) -> bool:
    """Whether these words stand side by side in a name."""
    own = words_of(name)
    if words[0] not in own:  # as with nearly every name
        return False
    return any(tuple(own[start : start + len(words)]) == words for start in range(len(own)))


def pieces_of_python(path: Path, source: str) -> Iterator[Piece]:
    """What a module defines, its strings and its comments."""
    for node in ast.walk(ast.parse(source)):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield Piece(path, line, name, is_name=True)
            case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)) | ast.alias(asname=str(name)):
                yield Piece(path, line, name, is_name=True)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield Piece(path, line, name, is_name=True)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield Piece(path, line, name, is_name=True)
            case ast.Constant(value=str(text)):  # capitals alone are the environment's, or an enum's
                yield Piece(path, line, text, is_name=_NAME.fullmatch(text) is not None and not text.isupper())
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Piece(path, token.start[0], token.string, is_name=False)


def pieces_of_template(path: Path, source: str) -> Iterator[Piece]:
    """The text of a template, and the names that Jinja sees."""
    yield Piece(path, 1, source, is_name=False)
    for expression in _JINJA.finditer(source):
        line = source.count("\n", 0, expression.start()) + 1
        for name in _NAME.findall(_QUOTED.sub("", expression[0])):
            yield Piece(path, line, name, is_name=True)


def pieces_of_texts(path: Path, source: str) -> Iterator[Piece]:
    """The keys of a file of texts, word by word, and the texts."""
    lines = source.splitlines()
    for key, text in json.loads(source).items():
        line = next((number for number, one in enumerate(lines, 1) if one.strip().startswith(json.dumps(key))), 1)
        yield from (Piece(path, line, name, is_name=True) for name in key.split("."))
        yield Piece(path, line, text, is_name=False)


def pieces() -> Iterator[Piece]:
    """All names and texts of the product."""
    for path in sorted(SOURCE.rglob("*")):
        if "versions" in path.parts or "__pycache__" in path.parts or not path.is_file():
            continue  # migrations are history: they stay as they were
        yield from (Piece(path, 0, part, is_name=True) for part in path.relative_to(SOURCE).with_suffix("").parts)
        read = {".py": pieces_of_python, ".html": pieces_of_template}.get(path.suffix)
        if path.name.startswith("texts.") and path.suffix == ".json":
            read = pieces_of_texts
        if read is not None:
            yield from read(path, path.read_text("utf-8"))
    for path in DOCS:
        if path != GLOSSARY:
            yield Piece(path, 1, path.read_text("utf-8"), is_name=False)


# What SCIM calls a first name (RFC 7643, section 4.1.1).
OF_STANDARDS = {"given_name", "givenName"}

# What older versions called an action: the sealed events that they wrote have it for good.
FORMER = {(SOURCE / "events" / "history.py", name) for name in ("state", "unstate")}


def is_fixed(piece: Piece) -> bool:
    """Whether a name is none that we could choose."""
    return piece.text in OF_STANDARDS or (piece.path, piece.text) in FORMER


def violations(term: Banned, found: list[Piece]) -> list[str]:
    """Where a term is used that may not be: each as ``path:line: what``."""
    prose = re.compile(r"(?<!\w)" + r"[\s\-]+".join(map(re.escape, term.words)) + r"(?!\w)", re.IGNORECASE)
    places = set()
    for piece in found:
        if piece.is_name:
            if has_words(piece.text, term.words) and not is_fixed(piece):
                places.add((str(piece.path), piece.line, piece.text))
        elif term.in_prose and term.words[0].lower() in piece.text.lower():  # as in few texts; the pattern is slow
            for match in prose.finditer(piece.text):
                line = piece.line + piece.text.count("\n", 0, match.start())
                places.add((str(piece.path), line, " ".join(match[0].split())))
    return [f"{path.removeprefix(f'{ROOT}/')}:{line}: {text}" for path, line, text in sorted(places)]


BANNED = banned(GLOSSARY.read_text("utf-8"))


@pytest.fixture(scope="module")
def everything() -> list[Piece]:
    """All names and texts of the product, read once."""
    return list(pieces())


@each("term", BANNED, show=lambda term: " ".join(term.words))  # one test, so that one process reads everything
def test_a_banned_word_is_not_used(term: Banned, everything: list[Piece]) -> None:
    places = violations(term, everything)
    assert not places, f"{' '.join(term.words)} is banned, use {term.instead}:\n" + "\n".join(places)


def test_the_glossary_bans_words_of_both_sorts() -> None:
    assert {term.in_prose for term in BANNED} == {False, True}
    assert len({term.words for term in BANNED}) == len(BANNED)


def test_everything_is_read(everything: list[Piece]) -> None:
    read = {(piece.path.suffix, piece.is_name) for piece in everything}
    assert read >= {(".py", True), (".py", False), (".html", True), (".html", False)}
    assert read >= {(".json", True), (".json", False), (".md", False)}
    docs = {piece.path.name for piece in everything if piece.path.suffix == ".md"}
    assert docs >= {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "api.md", "operations.md"}
    assert GLOSSARY.name not in docs
    assert Piece(SOURCE / "cli" / "main.py", 0, "main", is_name=True) in everything
    assert Piece(SOURCE / "cli" / "main.py", 0, "cli", is_name=True) in everything


def test_a_term_is_defined_once() -> None:
    terms = re.findall(
        r"^\| ([A-Z][\w\- ]+) \|", GLOSSARY.read_text("utf-8").partition("## Banned words")[0], re.MULTILINE
    )
    terms = [term for term in terms if term != "Term"]
    assert len(terms) > 40
    assert len(set(terms)) == len(terms)


TERM = Banned(("spool",), "buffer", in_prose=False)
PROSE = Banned(("at", "hand"), "cache", in_prose=True)


@pytest.mark.parametrize(
    "source",
    [
        "def spool(): ...",
        "class RowSpool: ...",
        "async def spool(): ...",
        "def f(the_spool): ...",
        "spool = 1",
        "self.spool_size = 1",
        "import x as spool",
        "with f() as spool: ...",
        "try: ...\nexcept E as spool: ...",
        "answer = {'rowSpool': 1}",
        "match x:\n    case [*spool]: ...",
        "match x:\n    case {**spool}: ...",
        "match x:\n    case int() as spool: ...",
        "lambda spool: 1",
        "[spool for spool in x]",
    ],
)
def test_a_name_is_refused(source: str) -> None:
    assert violations(TERM, list(pieces_of_python(Path("a.py"), source)))


@pytest.mark.parametrize(
    "source",
    [
        "x.spool()",
        "x = 'THE_SPOOL'",
        "def spooler(): ...",
        "x = 'to spool'",
        "# spool",
        '"""Spool it."""',
        "Whirlspool = 1",
    ],
)
def test_what_is_no_name_of_ours_is_allowed(source: str) -> None:
    assert not violations(TERM, list(pieces_of_python(Path("a.py"), source)))


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("x = 1\n# It is at hand.", 2),
        ('"""First.\n\nAt\nhand."""', 3),
        ("x = f'at-hand {y}'", 1),
        ("def at_hand(): ...", 1),
        ("class AtHand: ...", 1),
    ],
)
def test_prose_is_refused_where_the_row_says_so(source: str, line: int) -> None:
    (found,) = violations(PROSE, list(pieces_of_python(Path("a.py"), source)))
    assert found.startswith(f"a.py:{line}: ")


def test_other_prose_is_allowed() -> None:
    assert not violations(PROSE, list(pieces_of_python(Path("a.py"), "# that hand, at handing, hand at\nhand_at = 1")))


def test_templates_and_texts_are_read() -> None:
    template = list(pieces_of_template(Path("a.html"), "<p>spool at\nhand</p>\n{{ text('spool') }}\n{% if spool %}"))
    assert violations(TERM, template) == ["a.html:4: spool"]
    assert violations(PROSE, template) == ["a.html:1: at hand"]
    texts = list(pieces_of_texts(Path("a.json"), '{\n  "app.row_spool": "The spool",\n  "b": "At hand"\n}'))
    assert violations(TERM, texts) == ["a.json:2: row_spool"]
    assert violations(PROSE, texts) == ["a.json:3: At hand"]


def test_a_row_that_says_nothing_of_where_is_refused() -> None:
    with pytest.raises(AssertionError):
        banned("## Banned words\n| `x` | y | z | everywhere |")
    with pytest.raises(AssertionError):
        banned("## Banned words\n| x | y | z | names |")
