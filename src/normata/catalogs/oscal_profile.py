"""Profiles in OSCAL: selections of the controls of a catalog, which become baselines of its framework."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from normata.catalogs.documents import JSON, YAML, ImportFormat
from normata.catalogs.oscal_catalog import document_identifier
from normata.catalogs.oscal_validation import validated
from normata.catalogs.profiles import Choice, Profile, ProfileImport
from normata.catalogs.sources import source_values
from normata.core.changes.source import Fault, pointer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from normata.catalogs.documents import Document

_PLACE = "/profile"


def read_profile(document: Document, faults: list[Fault]) -> None:
    """Add the selections of an OSCAL profile to the profiles of its document. Faults are added to ``faults``.

    Its settings and alterations of controls are counted as left out: a baseline only selects the framework's controls.
    """
    model = validated(document, "profile", faults)
    if model is None:
        return
    profile: Any = document.values["profile"]  # validated, so it has OSCAL's structure
    metadata = model.profile.metadata
    document.profiles.append(
        Profile(
            file=document.file,
            place=_PLACE,
            id=str(model.profile.uuid),
            title=str(metadata.title),
            identifier=document_identifier(metadata),
            version=str(metadata.version),
            description=metadata.remarks,
            imports=tuple(_imports(profile)),
            source=source_values(document.content, document.left_out, is_json=document.is_json),
        )
    )
    modify = profile.get("modify", {})
    document.left_out["parameters that are set"] += len(modify.get("set-parameters", ()))
    document.left_out["controls that are altered"] += len(modify.get("alters", ()))
    document.left_out["groups of profiles"] += len(profile.get("merge", {}).get("custom", {}).get("groups", ()))
    document.left_out["resources"] += len(profile.get("back-matter", {}).get("resources", ()))


def _imports(profile: Mapping[str, Any]) -> Iterator[ProfileImport]:
    for number, entry in enumerate(profile["imports"]):
        place = _PLACE + pointer("imports", number)
        names = tuple(dict.fromkeys(filter(None, _names(entry["href"], profile))))
        included = tuple(_choices(place, "include-controls", entry))
        # Without either of the two, everything is included (OSCAL 1.0).
        includes_all = "include-all" in entry or not included
        yield ProfileImport(place, names, includes_all, included, tuple(_choices(place, "exclude-controls", entry)))


def _choices(place: str, key: str, entry: Mapping[str, Any]) -> Iterator[Choice]:
    for number, choice in enumerate(entry.get(key, ())):
        patterns = (match["pattern"] for match in choice.get("matching", ()) if match.get("pattern"))
        yield Choice(
            place + pointer(key, number),
            tuple(choice.get("with-ids", ())),
            tuple(patterns),
            with_children=choice.get("with-child-controls") == "yes",
        )


def _names(href: str, profile: Mapping[str, Any]) -> Iterable[str]:
    """All names of the source of an import: its address, or those of its resource in the back matter."""
    resources = profile.get("back-matter", {}).get("resources", ())
    found = next((one for one in resources if href.lower() == f"#{one['uuid']}".lower()), None)
    if found is None:
        yield href.removeprefix("#").removeprefix("urn:uuid:")
        yield _file_name(href)
        return
    yield found.get("title", "")
    yield found.get("description", "")
    for identifier in found.get("document-ids", ()):
        yield identifier["identifier"]
    for link in found.get("rlinks", ()):
        yield link["href"].removeprefix("urn:uuid:")
        yield _file_name(link["href"])


def _file_name(address: str) -> str:
    return unquote(address.partition("#")[0].partition("?")[0].rpartition("/")[2])


def _read(document: Document, faults: list[Fault]) -> tuple[list[Any], list[Any]]:
    read_profile(document, faults)
    return [], []


FORMAT = ImportFormat(
    name="OSCAL profile",
    recognizes=lambda document: "profile" in document.values,
    identity=lambda document: document.member("profile").get("uuid"),
    read=lambda document, _, faults: _read(document, faults),
    media_types=(JSON, YAML),
    extra="oscal",
)
