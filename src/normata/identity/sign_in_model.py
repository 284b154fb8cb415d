"""The tables of sign-in and sessions. Secrets are stored as SHA-256, passwords as Argon2id."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from sqlalchemy import BigInteger, Index, Integer, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.db.types import text
from normata.core.schema.fields import Count, Identifier, Name, Timestamp
from normata.core.schema.table import CODED, Table, foreign_key
from normata.identity.model import Digest

Means = Literal["link", "invitation", "password", "passkey", "oidc"]
MEANS: tuple[Means, ...] = get_args(Means)

MeansColumn = Annotated[Means, mapped_column(text(16), info=CODED)]
Secret = Annotated[str, mapped_column(text(), info=CODED)]
ClientText = Annotated[str, mapped_column(text(500))]  # as the browser sends it
AttemptKind = Annotated[str, mapped_column(text(16), info=CODED)]
Data = Annotated[str, mapped_column(text())]
Counter = Annotated[int, mapped_column(BigInteger().with_variant(Integer, "sqlite"))]


class Session(Table):
    """A person who has signed in with a browser, until they sign out, do nothing for 12 hours, or 7 days have passed.

    ``expires_at`` is the end of the seven days.
    """

    __tablename__ = "session"
    array = "sessions"
    event_columns = frozenset({"id", "user_id", "means", "created_at", "expires_at", "ended_at"})
    readable = event_columns | {"last_used_at", "address", "user_agent"}

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    user_id: Mapped[Identifier] = mapped_column(foreign_key("user_account.id"))
    digest: Mapped[Digest] = mapped_column(unique=True)
    means: Mapped[MeansColumn]
    created_at: Mapped[Timestamp]
    last_used_at: Mapped[Timestamp]
    expires_at: Mapped[Timestamp]
    ended_at: Mapped[Timestamp | None]
    address: Mapped[ClientText]
    user_agent: Mapped[ClientText]

    # Removing a member ends their sessions.
    __table_args__ = (Index(None, "user_id"), {"info": {"owned_by": "user_id", "ended_by": ("membership", "user_id")}})


class SignInLink(Table):
    """A link that signs a person in, once, within 15 minutes."""

    __tablename__ = "sign_in_link"
    array = "signInLinks"
    readable = frozenset({"id", "user_id", "created_at", "expires_at", "used_at"})

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    user_id: Mapped[Identifier] = mapped_column(foreign_key("user_account.id"))
    digest: Mapped[Digest] = mapped_column(unique=True)
    created_at: Mapped[Timestamp]
    expires_at: Mapped[Timestamp]
    used_at: Mapped[Timestamp | None]

    __table_args__ = (Index(None, "user_id"), {"info": {"owned_by": "user_id"}})


class SignInAttempt(Table):
    """The state between two requests of a sign-in, for ten minutes; it is used once.

    ``kind`` is its purpose, ``digest`` is of the secret that finds it, ``data`` is JSON. The user is not known yet, so
    the rows belong to nobody, and only the service reads them.
    """

    __tablename__ = "sign_in_attempt"
    published = False
    transient = True

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    kind: Mapped[AttemptKind]
    digest: Mapped[Digest] = mapped_column(unique=True)
    data: Mapped[Data]
    created_at: Mapped[Timestamp]
    expires_at: Mapped[Timestamp]
    used_at: Mapped[Timestamp | None]

    __table_args__ = (Index(None, "expires_at"),)


class SignInCount(Table):
    """The number of sign-in attempts within a minute, for one account or from one address.

    ``digest`` is of the account or the address. ``expires_at`` is the end of the minute; the next attempt of anybody
    then removes the row. All processes of all hosts count here.
    """

    __tablename__ = "sign_in_count"
    published = False
    transient = True

    digest: Mapped[Digest] = mapped_column(primary_key=True)
    count: Mapped[Count]
    expires_at: Mapped[Timestamp]

    __table_args__ = (Index(None, "expires_at"),)


class Password(Table):
    """A person's password, as a hash of Argon2id (RFC 9106)."""

    __tablename__ = "password"
    array = "passwords"
    readable = frozenset({"user_id", "changed_at"})

    user_id: Mapped[Identifier] = mapped_column(foreign_key("user_account.id"), primary_key=True)
    hash: Mapped[Secret]
    changed_at: Mapped[Timestamp]

    __table_args__ = ({"info": {"owned_by": "user_id"}},)


class Passkey(Table):
    """A public key that an authenticator of a person has made (WebAuthn, level 3).

    ``credential_id`` and ``credential`` are base64url without padding; the second has the credential's data, public key
    included.
    """

    __tablename__ = "passkey"
    array = "passkeys"
    event_columns = frozenset({"id", "user_id", "created_at", "last_used_at"})
    readable = event_columns | {"credential_id", "sign_count", "name"}

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    user_id: Mapped[Identifier] = mapped_column(foreign_key("user_account.id"))
    credential_id: Mapped[Secret] = mapped_column(unique=True)
    credential: Mapped[Secret]
    sign_count: Mapped[Counter]
    name: Mapped[Name]
    created_at: Mapped[Timestamp]
    last_used_at: Mapped[Timestamp | None]

    __table_args__ = (Index(None, "user_id"), {"info": {"owned_by": "user_id"}})


class ExternalIdentity(Table):
    """The identity of a person at a provider: issuer and subject (OpenID Connect Core 1.0, section 2)."""

    __tablename__ = "external_identity"
    array = "externalIdentities"
    readable = frozenset({"id", "user_id", "issuer", "created_at", "last_used_at"})

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    user_id: Mapped[Identifier] = mapped_column(foreign_key("user_account.id"))
    issuer: Mapped[Secret]
    subject: Mapped[Secret]
    created_at: Mapped[Timestamp]
    last_used_at: Mapped[Timestamp | None]

    __table_args__ = (UniqueConstraint("issuer", "subject"), Index(None, "user_id"), {"info": {"owned_by": "user_id"}})
