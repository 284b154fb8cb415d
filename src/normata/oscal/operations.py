"""The operation that gives a framework, its implementation and what is open in it as OSCAL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from normata.core.db.transaction import Transaction
from normata.core.http.formats import JSON, Format, Formats, PastFormatQuery
from normata.core.http.operation import Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.schema.fields import ShortText
from normata.core.schema.paging import QueryFlag
from normata.core.schema.text import slugify
from normata.core.schema.wire import encode
from normata.frameworks.model import Framework
from normata.oscal.catalog import FrameworkContent, read_framework
from normata.oscal.component import Component, read_assessed
from normata.oscal.names import prop
from normata.oscal.originals import Original, read_original
from normata.oscal.poam import Poam, read_poam

OscalModel = Literal["catalog", "component-definition", "poam"]
OscalFormat = Literal["json", "oscal"]


class OscalQuery(PastFormatQuery):
    """The query of a document of OSCAL."""

    model: Annotated[OscalModel, Field(description="What the document is about.")] = "catalog"
    format: Annotated[
        OscalFormat | None,
        Field(
            description="The media type of the answer: `application/json` or `application/oscal+json`, of the same"
            " bytes. It wins over `Accept`, so that a link can name it."
        ),
    ] = None  # type: ignore[assignment] # it has other formats
    original: Annotated[
        QueryFlag,
        Field(
            description="The catalog of OSCAL that the framework was last imported from, byte for byte; with `baseline`"
            " the profile of that baseline."
        ),
    ] = False
    baseline: Annotated[
        ShortText | None, Field(description="With `original`: the id, slug or identifier of a baseline.")
    ] = None

    @model_validator(mode="after")
    def _is_of_an_original(self) -> Self:
        if self.baseline is not None and not self.original:
            raise ValueError("goes with original: the other documents are of the whole framework")
        if self.original and (self.model != "catalog" or self.as_of is not None):
            raise ValueError("is the document of the last import: it takes neither model nor asOf")
        return self


class OscalDocument(BaseModel):
    """A document of OSCAL: it has one of these members."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"), validate_by_name=True)

    catalog: dict[str, Any] = Field(default_factory=dict, description="A catalog.")
    component_definition: dict[str, Any] = Field(default_factory=dict, description="A component definition.")
    plan_of_action_and_milestones: dict[str, Any] = Field(
        default_factory=dict, description="A plan of action and milestones."
    )


def _build(transaction: Transaction, request: Request) -> FrameworkContent | Component | Poam | Original:
    query: OscalQuery = request.query
    organization_id, framework_id = request.organization_id, request.id
    if query.original:
        return read_original(transaction, organization_id, framework_id, query.baseline)
    if query.model == "catalog":
        return read_framework(transaction, organization_id, framework_id)
    assessed = read_assessed(transaction, organization_id, framework_id, query.as_of)
    if query.model == "component-definition":
        return Component(assessed)
    return read_poam(transaction, assessed)


def _present(read: FrameworkContent | Component | Poam | Original) -> Mapping[str, Any]:
    return read.present()


def _file_name(document: Mapping[str, Any]) -> str:
    [(model, content)] = document.items()
    if isinstance(content, Original):
        return slugify(content.name, model)
    return slugify(content["metadata"]["title"], model)


def _render(document: Mapping[str, Any]) -> bytes:
    original: Original | None = document.get("original")
    return encode(document) if original is None else original.content


def _own_type(document: Mapping[str, Any]) -> tuple[str, str] | None:
    original: Original | None = document.get("original")
    return None if original is None else original.own_type


_FORMATS = Formats(
    present=_present,
    file_name=_file_name,
    own_type=_own_type,
    by_name={
        "json": replace(JSON, render=_render),
        "oscal": Format(
            media_type="application/oscal+json",
            render=_render,
            is_text=False,
            schema={"type": "object"},
            ending="json",
        ),
    },
)

_CONTROL = {
    "id": "A.5.11",
    "title": "Return of assets",
    "props": [{"name": "label", "value": "A.5.11"}, prop("id", "iso-27001-2022:A.5.11")],
    "parts": [
        {
            "id": "A.5.11_gdn",
            "name": "guidance",
            "prose": "Nothing of the organization's stays with those who leave it.",
        }
    ],
}

OPERATIONS: tuple[Operation, ...] = (
    ReadOperation(
        path="/frameworks/{id}/oscal/",
        operation_id="getFrameworkOscal",
        tag="Reports",
        summary="Get a framework as OSCAL",
        description="""\
A document of OSCAL 1.1.3, in JSON: the same data give the same bytes, and ids (UUIDv5) that follow from those of the
framework and its controls.

`model=catalog` is a framework that the organization can see: its groups and controls, with their texts. It can be
imported again. `component-definition` is how the organization implements a framework that it has adopted: a requirement
for each of its own, assessed or not, with status, note, gap and who is responsible, by the id of the membership.
`poam` has its gaps, its conflicts and the open findings about its controls, each with a risk that has the deadline.

`original=true` is the document of OSCAL that the framework was last imported from, as it came: the same bytes, also
where they are YAML. With `baseline` it is the profile of that baseline. If there is none, the answer is 404 and says
so.

What OSCAL cannot express is in properties of the namespace `urn:uuid:fb7d4424-a164-4aac-bc0f-c1830e6b5535`. Those
called `left-out`, in the metadata, name what a document does not have.""",
        about=Framework,
        id_description="The id of the framework.",
        query=OscalQuery,
        build=_build,
        formats=_FORMATS,
        is_long=True,
        answer=OscalDocument,
        answer_description="The document.",
        example={
            "catalog": {
                "uuid": "5f0a1c36-5a0e-5d0b-9a43-7e7a4fbb3a51",
                "metadata": {
                    "title": "ISO/IEC 27001:2022",
                    "last-modified": "2025-02-10T09:30:00.000Z",
                    "version": "2022",
                    "oscal-version": "1.1.3",
                },
                "groups": [{"id": "A.5", "title": "Organizational controls", "controls": [_CONTROL]}],
            }
        },
    ),
)
