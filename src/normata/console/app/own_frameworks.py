"""Frameworks of the organization's own: importing one from a file, after a preview, and changing it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import PurePath
from typing import Any, NamedTuple

from starlette.responses import Response

from normata.catalogs.registry import by_media_type
from normata.console.app.api_calls import ApiQuery, FilledFrom, Outcome, Refusal, Upload, tag_of
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.uploaded import File, endings_of, importing, upload_form
from normata.console.texts import text
from normata.errors import Forbidden

_IMPORT = "importCatalog"
_IMPORTING = ("import", "adopt")  # steps; after the second, the framework is adopted as well
_NAMELESS = frozenset(  # media types of files without the name of their framework
    media_type.name for media_type, formats in by_media_type().items() if all(one.needs_name for one in formats)
)
_EDITED = ("name", "identifier", "version", "description")


class Sent(NamedTuple):
    """The form of an upload. ``file`` is null if none was chosen; ``previewed`` is the mark of the previewed input."""

    step: str
    name: str
    skip_unknown: bool
    file: File | None
    editorial: bool = False
    previewed: str = ""

    @property
    def mark(self) -> str:
        """A hash of the input. It changes with the file, its name and the options."""
        assert self.file is not None  # noqa: S101 - narrows the type
        options = f"{self.skip_unknown} {self.editorial}"
        parts = (self.file.digest, self.file.media_type or "", options, self.name)
        return sha256("\0".join(parts).encode()).hexdigest()


async def show_upload(page_request: OrganizationRequest) -> Response:
    """Show the form that takes a file."""
    return await _upload_page(page_request, Sent("", "", skip_unknown=False, file=None))


async def upload(page_request: OrganizationRequest) -> Response:
    """Preview the import of a file, or import it, as ``step`` says.

    The preview page contains the file, so nobody has to choose it again. Input that has changed is previewed first.
    """
    sent = await _sent(page_request)
    if sent.file is None or not sent.file.media_type:
        endings = ", ".join(endings_of(importing(page_request, _IMPORT)))
        message = text("app.upload.no_file") if sent.file is None else text("app.upload.unknown_type", endings=endings)
        refused = Refusal(400, "validation", text("app.upload.refused"), message, {"file": message})
        return await _upload_page(page_request, sent, Outcome(None, refused))
    is_import = sent.step in _IMPORTING and sent.previewed == sent.mark
    outcome = await page_request.change(
        _IMPORT,
        query={
            "name": sent.name,
            "skipUnknown": "true" if sent.skip_unknown else "",
            "editorial": "true" if sent.editorial else "",
        },
        upload=Upload(sent.file.media_type, sent.file.content),
        dry_run=not is_import,
    )
    if outcome.refusal is not None or not is_import:
        return await _upload_page(page_request, sent, outcome)
    frameworks = outcome.answer["frameworkIds"]
    if len(frameworks) != 1:
        return page_request.go(page_request.path("frameworks"), "imported")
    if sent.step == "adopt":
        adopted = await page_request.change("adoptFramework", row_id=frameworks[0])
        if adopted.refusal is None:
            return page_request.go(page_request.path("frameworks", frameworks[0]), "imported_and_adopted")
    return page_request.go(page_request.path("frameworks", frameworks[0], "adoption"), "imported")


async def show_edit(page_request: OrganizationRequest) -> Response:
    """Show the form that changes a framework of the organization's own. Raises Forbidden for a centralized one."""
    return await _edit_page(page_request)


async def edit(page_request: OrganizationRequest) -> Response:
    """Change the name, identifier, version and description of a framework."""
    form, framework_id = await page_request.fields(), page_request.param("id")
    typed = {name: form.get(name).replace("\r\n", "\n") or None for name in _EDITED if form.has(name)}
    filled_from = FilledFrom(
        ApiQuery("getFramework", id=framework_id), lambda framework: framework, form.get("filled_from")
    )
    outcome = await page_request.change(
        "changeFramework", row_id=framework_id, body=typed, filled_from=filled_from if form.has("filled_from") else None
    )
    if outcome.refusal is not None:
        return await _edit_page(page_request, outcome.refusal, typed)
    steps = ("frameworks", framework_id) if outcome.answer["isAdopted"] else ("frameworks", framework_id, "adoption")
    return page_request.go(page_request.path(*steps), "framework_changed")


async def _upload_page(page_request: OrganizationRequest, sent: Sent, outcome: Outcome | None = None) -> Response:
    found = await page_request.ask_one(ApiQuery("listFrameworks", {"sortColumn": "name"}))
    refusal, answer = (None, None) if outcome is None else (outcome.refusal, outcome.answer)
    return page_request.page(
        "app/upload.html",
        status=refusal.status if refusal else 200,
        own=[one["name"] for one in found["items"] if one["organizationId"] is not None],
        endings=endings_of(importing(page_request, _IMPORT)),
        sent=sent,
        mark=sent.mark if answer else "",
        is_adoptable=answer is not None and _is_adoptable(answer["answer"]["frameworkIds"], found["items"]),
        preview=answer and answer["answer"],
        effects=answer,
        refusal=refusal,
    )


def _is_adoptable(framework_ids: Sequence[str], known: Sequence[Mapping[str, Any]]) -> bool:
    """Whether an import brings one framework that is not adopted yet."""
    return len(framework_ids) == 1 and not any(one["id"] == framework_ids[0] and one["isAdopted"] for one in known)


async def _edit_page(
    page_request: OrganizationRequest, refusal: Refusal | None = None, typed: Mapping[str, Any] | None = None
) -> Response:
    framework = await page_request.ask_one(ApiQuery("getFramework", id=page_request.param("id")))
    if framework["organizationId"] is None:
        raise Forbidden(text("app.own.centralized"))
    return page_request.page(
        "app/framework_edit.html",
        status=refusal.status if refusal else 200,
        framework=framework,
        filled_from=tag_of(framework),
        says=framework | dict(typed or {}),
        refusal=refusal,
    )


# --- Reading the form


async def _sent(page_request: OrganizationRequest) -> Sent:
    """The form of an upload. Raises UnsupportedMediaType, InvalidRequest and TooLarge."""
    form = await upload_form(page_request, importing(page_request, _IMPORT))
    return Sent(
        form.get("step"),
        form.get("name") or (_proposed_name(form.file) if form.file else ""),
        skip_unknown=form.get("skip_unknown") == "true",
        editorial=form.get("editorial") == "true",
        file=form.file,
        previewed=form.get("previewed"),
    )


def _proposed_name(file: File) -> str:
    """The name for a framework whose file has none, from that of the file: Dock rules from ``dock-rules.csv``."""
    if file.media_type not in _NAMELESS:
        return ""
    words = " ".join(re.sub(r"[\W_]+", " ", PurePath(file.name).stem).split())
    return words[:1].upper() + words[1:]
