"""What a provider says of a person, and how the service says it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError
from scim2_models import InvalidValueException

from normata.core.schema.fields import VisibleEmail, VisibleName
from normata.identity.provisioning.people import Profile
from normata.scim.resources import PersonEmail, PersonName, User

_LONGEST = 500  # characters of a text
_MOST_ADDRESSES = 20

_ADDRESS: TypeAdapter[str] = TypeAdapter(VisibleEmail)
_NAME: TypeAdapter[str] = TypeAdapter(VisibleName)


def text_of(value: str | None, attribute: str) -> str | None:
    """A text that can be stored. Raises InvalidValueException."""
    if value is not None and ("\0" in value or len(value) > _LONGEST):
        raise InvalidValueException(detail=f"{attribute} has at most {_LONGEST} characters, and none that is null")
    return value or None


def profile_of(user: User, *, makes_account: bool) -> Profile:
    """What a resource says of a person, who gets an account if it ``makes_account``. Raises InvalidValueException."""
    user_name = (text_of(user.user_name, "userName") or "").strip()
    if not user_name:
        raise InvalidValueException(detail="userName must not be empty")
    details = _details(user)
    return Profile(
        user_name=user_name,
        email=_address(user_name, details) if makes_account else "",
        name=_name(user_name, details),
        external_id=text_of(user.external_id, "externalId"),
        details=details,
        active=user.active,
    )


def _details(user: User) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if user.display_name:
        details["displayName"] = text_of(user.display_name, "displayName")
    if user.name is not None:
        parts = {
            "formatted": user.name.formatted,
            "familyName": user.name.family_name,
            "givenName": user.name.given_name,
        }
        details["name"] = {name: text_of(value, f"name.{name}") for name, value in parts.items() if value}
    if user.emails:
        if len(user.emails) > _MOST_ADDRESSES:
            raise InvalidValueException(detail=f"emails has at most {_MOST_ADDRESSES} addresses")
        details["emails"] = [_email(one) for one in user.emails]
    return {name: value for name, value in details.items() if value}


def _email(email: PersonEmail) -> dict[str, Any]:
    values = {
        "value": text_of(email.value, "emails.value"),
        "type": text_of(email.type, "emails.type"),
        "primary": email.primary,
    }
    return {name: value for name, value in values.items() if value is not None}


def _address(user_name: str, details: Mapping[str, Any]) -> str:
    """The address of an account: the user name, or else the preferred address. Raises InvalidValueException."""
    addresses = sorted(details.get("emails", ()), key=lambda email: email.get("primary") is not True)
    for value in (user_name, *(email.get("value", "") for email in addresses)):
        try:
            return _ADDRESS.validate_python(value)
        except ValidationError:
            continue
    raise InvalidValueException(detail="userName must be an email address, or emails must have one")


def _name(user_name: str, details: Mapping[str, Any]) -> str:
    """The name of a person, as people see it. Raises InvalidValueException."""
    parts = details.get("name", {})
    whole = " ".join(parts[part] for part in ("givenName", "familyName") if part in parts)
    name = details.get("displayName") or parts.get("formatted") or whole or user_name
    try:
        return _NAME.validate_python(name.strip())
    except ValidationError:
        raise InvalidValueException(detail="the name must have characters that can be seen, and no others") from None


def resource_of(row: Any, *, active: bool) -> User:
    """A person as a resource, without what the transaction has elsewhere: groups and meta."""
    details = row.provisioned_details
    if details is None:
        details = {"displayName": row.name, "emails": [{"value": row.email, "type": "work", "primary": True}]}
    parts = details.get("name")
    return User(
        id=row.id,
        external_id=row.provisioned_external_id,
        user_name=row.provisioned_user_name or row.email,
        display_name=details.get("displayName"),
        name=parts
        and PersonName(
            formatted=parts.get("formatted"), family_name=parts.get("familyName"), given_name=parts.get("givenName")
        ),
        emails=[PersonEmail(**email) for email in details.get("emails", ())] or None,
        active=active,
    )
