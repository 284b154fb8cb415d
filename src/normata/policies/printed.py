"""A version of a policy on paper: what it says, and the document that Typst prints of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from markdown_it.token import Token

from normata.core.documents.markdown_source import FIRST_HEADING, LONGEST, TooSlow, as_tokens
from normata.reports.pdf import compiled

# A table is laid out as a whole, and each part takes some memory: a text with more is printed as it was typed.
_MOST_ROWS, _MOST_PARTS, _DEEPEST = 500, 8_000, 12
_WORD = re.compile(r"[^\s\u200b]{40}")

_SOURCE = Path(__file__).with_name("printed.typ").read_bytes()

_NEVER = "1970-01-01T00:00:00Z"  # the date of a document without one

Part = dict[str, Any]


def as_pdf(document: Mapping[str, Any]) -> bytes:
    """The document of a version, in wire form. The same version gives the same bytes."""
    at = document["approvedAt"] or document["submittedAt"]
    facts = [("Version", str(document["version"])), ("Approved", _approval(document))]
    if document["publishedAt"] is not None:
        facts.append(("Published", document["publishedAt"][:10]))
    facts.append(("SHA-256 of the text", document["contentSha256"]))
    content = {
        "organization": document["organization"],
        "title": document["title"],
        "foot": f"{document['organization']} · {document['title']} · Version {document['version']}",
        "facts": facts,
        "parts": parts_of(document["content"]),
    }
    return compiled(_SOURCE, content, datetime.fromisoformat(at or _NEVER).replace(microsecond=0))


def _approval(document: Mapping[str, Any]) -> str:
    if document["isImported"]:
        return "imported, not approved here"
    if document["approvedAt"] is None:
        return "not yet"
    return f"{document['approvedAt'][:10]} by {document['approvedBy'] or 'somebody who has left'}"


def parts_of(content: Any) -> Sequence[Part]:
    """The parts of a text: paragraphs, headings, lists, tables, quotes, code and rules, each with its words."""
    if content is None:
        return [{"is": "paragraph", "words": [{"text": "The text was erased."}]}]
    if not isinstance(content, str):
        return [{"is": "code", "text": _breakable(json.dumps(content, ensure_ascii=False, indent=2))}]
    if len(content) <= LONGEST:
        try:
            tokens = as_tokens(content)
        except TooSlow:
            tokens = None
        if tokens is not None and _is_small(tokens):
            return list(_parts(iter(tokens), ""))
    return [{"is": "plain", "text": _breakable(content)}]


def _breakable(written: str) -> str:
    """A text whose words may break after 40 letters, because they are wider than the page."""
    return _WORD.sub(lambda found: f"{found[0]}\u200b", written)


def _is_small(tokens: Sequence[Token]) -> bool:
    if any(token.level > _DEEPEST for token in tokens):
        return False
    rows = sum(token.type == "tr_open" for token in tokens)
    return rows <= _MOST_ROWS and sum(1 + len(token.children or ()) for token in tokens) <= _MOST_PARTS


def _parts(tokens: Iterator[Token], end: str) -> Iterator[Part]:
    """The parts up to the token that ends what they are in."""
    for token in tokens:
        if token.type == end:
            return
        match token.type:
            case "heading_open":
                yield {"is": "heading", "level": int(token.tag[1:]) - FIRST_HEADING + 1, "words": _line(tokens)}
            case "paragraph_open":
                yield {"is": "paragraph", "words": _line(tokens)}
            case "bullet_list_open" | "ordered_list_open":
                start = token.attrGet("start")
                items = list(_parts(tokens, token.type.replace("open", "close")))
                is_ordered = token.type == "ordered_list_open"
                yield {"is": "list", "ordered": is_ordered, "start": 1 if start is None else int(start), "items": items}
            case "list_item_open" | "blockquote_open":
                kind = "item" if token.type == "list_item_open" else "quote"
                yield {"is": kind, "parts": list(_parts(tokens, token.type.replace("open", "close")))}
            case "table_open":
                yield _table(tokens)
            case "fence" | "code_block":
                yield {"is": "code", "text": _breakable(token.content.rstrip("\n"))}
            case "hr":
                yield {"is": "rule"}
            case _:  # the ends of lines
                pass


def _table(tokens: Iterator[Token]) -> Part:
    """A table: its rows of cells, the first of which are the titles."""
    rows: list[list[Sequence[Part]]] = []
    for token in tokens:
        if token.type == "table_close":
            break
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(_words(token.children or ()))
    return {"is": "table", "rows": rows}


def _line(tokens: Iterator[Token]) -> Sequence[Part]:
    return _words(next(tokens).children or ())


def _words(children: Sequence[Token]) -> Sequence[Part]:
    """The pieces of a line, each with how it is set: strong, emphasized, struck, as code; and where a link leads."""
    found: list[Part] = []
    styles: dict[str, int] = dict.fromkeys(("strong", "em", "s"), 0)
    link = ""
    for token in children:
        name, _, what = token.type.rpartition("_")
        if name in styles:
            styles[name] += 1 if what == "open" else -1
        elif name == "link":
            link = str(token.attrGet("href") or "") if what == "open" else ""
        elif token.type in ("softbreak", "hardbreak"):
            found.append({"text": "\n"})
        elif token.content:
            set_as = [one for one, depth in styles.items() if depth] + (["code"] if token.type == "code_inline" else [])
            address = {"link": link} if link.startswith(("https://", "http://", "mailto:")) else {}
            found.append({"text": _breakable(token.content), "as": set_as, **address})
    return found
