"""The list of controls as most people would write it: FastAPI, Pydantic models, the SQLAlchemy ORM.

It reads the database file that Normata made and answers with the same items. Classes for the tables, relationships that
are loaded eagerly, a session a request, an endpoint in FastAPI's thread pool, a response model: what the tutorials of
these libraries show. Nothing is left out that they teach for speed, and nothing is added that they do not. Its
endpoints are ordinary functions and not coroutines, which are no faster over SQLite, see benchmarks/README.md.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import Depends, FastAPI, HTTPException, Query
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from sqlalchemy import ForeignKey, create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, joinedload, mapped_column, relationship, selectinload

DATABASE = "BENCH_DATABASE"  # the environment variable with the URL

_LEVELS: tuple[Literal["NONE", "PARTIAL", "FULL"], ...] = ("NONE", "PARTIAL", "FULL")

# --- Tables


class Base(DeclarativeBase):
    """The base of all tables."""


class AccessToken(Base):
    """A token, kept as its digest."""

    __tablename__ = "access_token"

    id: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[str]
    digest: Mapped[str]
    expires_at: Mapped[str | None]
    revoked_at: Mapped[str | None]


class Membership(Base):
    """A user's place in an organization."""

    __tablename__ = "membership"

    id: Mapped[str] = mapped_column(primary_key=True)
    organization_id: Mapped[str]
    user_id: Mapped[str]


class Framework(Base):
    """A catalog of controls."""

    __tablename__ = "framework"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    identifier: Mapped[str]
    identifier_color: Mapped[str | None]
    identifier_key: Mapped[str]
    version: Mapped[str | None]
    is_centralized: Mapped[bool]


class FrameworkAdoption(Base):
    """An organization works with a framework."""

    __tablename__ = "framework_adoption"

    id: Mapped[str] = mapped_column(primary_key=True)
    organization_id: Mapped[str]
    framework_id: Mapped[str]


class Control(Base):
    """A requirement of a framework."""

    __tablename__ = "control"

    id: Mapped[str] = mapped_column(primary_key=True)
    framework_id: Mapped[str] = mapped_column(ForeignKey("framework.id"))
    parent_id: Mapped[str | None] = mapped_column(ForeignKey("control.id"))
    identifier: Mapped[str]
    name: Mapped[str]
    slug: Mapped[str]
    purpose: Mapped[str | None]
    type: Mapped[str]
    description: Mapped[str | None]
    is_mandatory: Mapped[bool]
    is_centralized: Mapped[bool]
    created_at: Mapped[str]
    updated_at: Mapped[str]
    position: Mapped[int]

    framework: Mapped[Framework] = relationship()
    parent: Mapped[Control | None] = relationship(remote_side="Control.id", back_populates="children")
    children: Mapped[list[Control]] = relationship(back_populates="parent", order_by="Control.position")
    source_matches: Mapped[list[ControlMatch]] = relationship(foreign_keys="ControlMatch.target_control_id")


class ControlMatch(Base):
    """Where the source is covered, the target is."""

    __tablename__ = "control_match"

    id: Mapped[str] = mapped_column(primary_key=True)
    source_control_id: Mapped[str] = mapped_column(ForeignKey("control.id"))
    target_control_id: Mapped[str] = mapped_column(ForeignKey("control.id"))
    match_level: Mapped[int]

    source: Mapped[Control] = relationship(foreign_keys=[source_control_id])


class ControlCoverage(Base):
    """What an organization says of a control."""

    __tablename__ = "control_coverage"

    id: Mapped[str] = mapped_column(primary_key=True)
    organization_id: Mapped[str]
    control_id: Mapped[str]
    coverage_status: Mapped[int]
    coverage_gap: Mapped[str | None]


class EffectiveCoverage(Base):
    """What follows for a control."""

    __tablename__ = "effective_coverage"

    organization_id: Mapped[str] = mapped_column(primary_key=True)
    control_id: Mapped[str] = mapped_column(primary_key=True)
    status: Mapped[int]
    is_indirect: Mapped[bool]


# --- Answers


class Out(BaseModel):
    """The base of all answers."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, from_attributes=True)


class FrameworkReference(Out):
    """The framework of a matched control."""

    id: str
    name: str
    identifier: str
    identifier_color: str | None


class FrameworkOut(FrameworkReference):
    """The framework of a control."""

    version: str | None
    is_centralized: bool


class ControlReference(Out):
    """A parent or child."""

    id: str
    identifier: str
    name: str


class MatchedControl(ControlReference):
    """The source of a match."""

    slug: str
    framework: FrameworkReference


class MatchOut(Out):
    """A match."""

    id: str
    match_level: Literal["NONE", "PARTIAL", "FULL"]
    matched_control: MatchedControl


class CoverageOut(Out):
    """A statement."""

    coverage_status: Literal["NONE", "PARTIAL", "FULL"]
    coverage_gap: str | None


class ControlOut(Out):
    """A control."""

    id: str
    framework_id: str
    parent_id: str | None
    identifier: str
    name: str
    slug: str
    purpose: str | None
    type: str
    description: str | None
    is_mandatory: bool
    is_centralized: bool
    created_at: str
    updated_at: str
    framework: FrameworkOut
    parent: ControlReference | None
    coverage: CoverageOut
    effective_coverage_status: Literal["NONE", "PARTIAL", "FULL"]
    is_indirectly_covered: bool
    source_matches: list[MatchOut]
    children: list[ControlReference]


class ControlPage(Out):
    """A page of controls."""

    items: list[ControlOut]
    total: int
    page: int
    limit: int


# --- The application

engine = create_engine(os.environ.get(DATABASE, "sqlite://"))
app = FastAPI()
bearer = HTTPBearer()


def open_session() -> Iterator[Session]:
    """A session for one request."""
    with Session(engine) as session:
        yield session


CurrentSession = Annotated[Session, Depends(open_session)]


def find_user(session: CurrentSession, credentials: Annotated[HTTPAuthorizationCredentials, Depends(bearer)]) -> str:
    """The id of the user whose token it is."""
    digest = hashlib.sha256(credentials.credentials.encode()).hexdigest()
    token = session.scalar(select(AccessToken).where(AccessToken.digest == digest, AccessToken.revoked_at.is_(None)))
    if token is None or (token.expires_at is not None and token.expires_at <= datetime.now(UTC).isoformat()):
        raise HTTPException(401)
    return token.user_id


@app.get("/controls/", response_model=ControlPage)
def list_controls(
    session: CurrentSession,
    user_id: Annotated[str, Depends(find_user)],
    organization_id: Annotated[str, Query(alias="organizationId", min_length=1)],
    limit: Annotated[int, Query(ge=5, le=100)] = 100,
    page: Annotated[int, Query(ge=1)] = 1,
) -> ControlPage:
    """The controls of the frameworks that the organization has adopted."""
    member = select(Membership.id).where(Membership.organization_id == organization_id, Membership.user_id == user_id)
    if session.scalar(member) is None:
        raise HTTPException(404)
    adopted = set(
        session.scalars(
            select(FrameworkAdoption.framework_id).where(FrameworkAdoption.organization_id == organization_id)
        )
    )
    total = session.scalar(select(func.count()).select_from(Control).where(Control.framework_id.in_(adopted)))
    rows = session.execute(
        select(Control, EffectiveCoverage, ControlCoverage)
        .join(Control.framework)
        .join(
            EffectiveCoverage,
            (EffectiveCoverage.control_id == Control.id) & (EffectiveCoverage.organization_id == organization_id),
        )
        .outerjoin(
            ControlCoverage,
            (ControlCoverage.control_id == Control.id) & (ControlCoverage.organization_id == organization_id),
        )
        .where(Control.framework_id.in_(adopted))
        .order_by(Framework.identifier_key, Control.framework_id, Control.position, Control.id)
        .limit(limit)
        .offset((page - 1) * limit)
        .options(
            joinedload(Control.framework),
            joinedload(Control.parent),
            selectinload(Control.children),
            selectinload(Control.source_matches).joinedload(ControlMatch.source).joinedload(Control.framework),
        )
    )
    items = [to_item(control, effective, statement, adopted) for control, effective, statement in rows]
    return ControlPage(items=items, total=total or 0, page=page, limit=limit)


def to_item(
    control: Control, effective: EffectiveCoverage, statement: ControlCoverage | None, adopted: set[str]
) -> ControlOut:
    """A control as it is answered."""
    return ControlOut(
        id=control.id,
        framework_id=control.framework_id,
        parent_id=control.parent_id,
        identifier=control.identifier,
        name=control.name,
        slug=control.slug,
        purpose=control.purpose,
        type=control.type,
        description=control.description,
        is_mandatory=control.is_mandatory,
        is_centralized=control.is_centralized,
        created_at=control.created_at,
        updated_at=control.updated_at,
        framework=FrameworkOut.model_validate(control.framework),
        parent=ControlReference.model_validate(control.parent) if control.parent else None,
        coverage=CoverageOut(
            coverage_status=_LEVELS[statement.coverage_status if statement else 0],
            coverage_gap=statement.coverage_gap if statement else None,
        ),
        effective_coverage_status=_LEVELS[effective.status],
        is_indirectly_covered=effective.is_indirect,
        source_matches=[
            MatchOut(
                id=match.id,
                match_level=_LEVELS[match.match_level],
                matched_control=MatchedControl.model_validate(match.source),
            )
            for match in sorted(control.source_matches, key=in_order)
            if match.source.framework_id in adopted
        ],
        children=[ControlReference.model_validate(child) for child in control.children],
    )


def in_order(match: ControlMatch) -> tuple[str, str, int, str]:
    """The order of matches: that of frameworks, then of the catalog."""
    source = match.source
    return source.framework.identifier_key, source.framework_id, source.position, match.id


@app.get("/readyz")
def ready() -> dict[str, str]:
    """Whether it serves."""
    return {"status": "ready"}


def create_app() -> FastAPI:
    """The application."""
    return app
