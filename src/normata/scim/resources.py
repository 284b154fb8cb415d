"""The SCIM resources that are served, and what the service says of itself (RFC 7643).

References name models that come later, which the models need to know at once: no annotation here waits.
"""

from typing import Annotated, Any, ClassVar

from pydantic import Field
from scim2_models import (
    URN,
    AuthenticationScheme,
    Bulk,
    CaseExact,
    ChangePassword,
    ComplexAttribute,
    ETag,
    Filter,
    Mutability,
    Patch,
    Reference,
    Required,
    Resource,
    ScimPolicy,
    ScimProvider,
    ServiceProviderConfig,
    Sort,
    Uniqueness,
)

MOST_RESULTS = 200  # resources of a page


class PersonName(ComplexAttribute):
    """The parts of a name."""

    formatted: str | None = None
    """The whole name, as it is shown."""

    family_name: str | None = None
    """The family name."""

    given_name: str | None = None
    """The first name."""


class PersonEmail(ComplexAttribute):
    """An address of a person. It is not checked: only that of the account has to be one."""

    value: str | None = None
    """The address."""

    type: str | None = Field(None, examples=["work", "home", "other"])
    """What it is for, such as ``work``."""

    primary: bool | None = None
    """Whether it is the preferred one."""


class PersonGroup(ComplexAttribute):
    """A group that a person is in."""

    value: Annotated[str | None, Mutability.read_only, CaseExact.true] = None
    """The id of the group."""

    ref: Annotated[Reference["Group"] | None, Mutability.read_only] = Field(
        None, serialization_alias="$ref", validation_alias="$ref"
    )
    """The address of the group."""

    display: Annotated[str | None, Mutability.read_only] = None
    """The name of the group."""


class GroupMember(ComplexAttribute):
    """A person in a group."""

    value: Annotated[str | None, Mutability.immutable, CaseExact.true] = None
    """The id of the person."""

    ref: Annotated[Reference["User"] | None, Mutability.immutable] = Field(
        None, serialization_alias="$ref", validation_alias="$ref"
    )
    """The address of the person."""

    type: Annotated[str | None, Mutability.immutable] = Field(None, examples=["User"])
    """That it is a person: ``User``."""


class Group(Resource[Any]):
    """A group of people, which may give them a role."""

    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:Group")

    display_name: Annotated[str | None, Required.true] = None
    """What the provider calls the group."""

    members: list[GroupMember] | None = None
    """The people in the group."""

    Members: ClassVar[type[ComplexAttribute]] = GroupMember


class User(Resource[Any]):
    """A person: a membership of the organization."""

    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:User")

    user_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    """What the provider calls the person: mostly their email address."""

    name: PersonName | None = None
    """The parts of the name."""

    display_name: str | None = None
    """The name, as it is shown."""

    active: bool | None = None
    """Whether the person is a member now."""

    emails: list[PersonEmail] | None = None
    """The addresses of the person."""

    groups: Annotated[list[PersonGroup] | None, Mutability.read_only] = None
    """The groups that the person is in."""

    Name: ClassVar[type[ComplexAttribute]] = PersonName
    Emails: ClassVar[type[ComplexAttribute]] = PersonEmail
    Groups: ClassVar[type[ComplexAttribute]] = PersonGroup


# What providers send beyond these is left out: a department, a phone number, a password.
POLICY = ScimPolicy(
    unknown=ScimPolicy.Unknown.ignore,
    remove_value_as_filter=ScimPolicy.RemoveValue.apply,
    unmatched_path_filter=ScimPolicy.UnmatchedPathFilter.create,
)
PROVIDER = ScimProvider(
    models=[User, Group],
    config=ServiceProviderConfig(
        patch=Patch(supported=True),
        bulk=Bulk(supported=False, max_operations=0, max_payload_size=0),
        filter=Filter(supported=True, max_results=MOST_RESULTS),
        change_password=ChangePassword(supported=False),
        sort=Sort(supported=False),
        etag=ETag(supported=True),
        authentication_schemes=[
            AuthenticationScheme(
                type=AuthenticationScheme.Type.oauthbearertoken,
                name="Bearer token",
                description="A token of the scope scim, in the header Authorization.",
                spec_uri="https://www.rfc-editor.org/info/rfc6750",
                primary=True,
            )
        ],
    ),
    policy=POLICY,
)

__all__ = ["MOST_RESULTS", "PROVIDER", "Group", "GroupMember", "PersonEmail", "PersonGroup", "PersonName", "User"]
