"""The list of controls as a typical application: FastAPI, Pydantic models and the SQLAlchemy ORM.

It reads the database file that Normata has created, and answers with the same items. It has classes for the tables,
eagerly loaded relationships, a session for each request, an endpoint in FastAPI's thread pool, and a response model
(Normata's own), as the tutorials of these libraries show. It uses all advice on speed from these tutorials, and nothing
else.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Query
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import ForeignKey, create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, joinedload, mapped_column, relationship, selectinload

from normata.core.schema.fields import COVERAGE_STATUSES
from normata.frameworks import control_wire as wire
from normata.frameworks.model import ControlCoverage, EffectiveCoverage, FrameworkAdoption
from normata.frameworks.operations import ControlPage
from normata.identity.model import AccessToken, Membership

DATABASE = "BENCH_DATABASE"  # the environment variable with the URL

# --- Tables; those without relationships are Normata's own classes


class Base(DeclarativeBase):
    id: Mapped[str] = mapped_column(primary_key=True)


class Framework(Base):
    __tablename__ = "framework"
    name: Mapped[str]
    identifier: Mapped[str]
    identifier_color: Mapped[str | None]
    identifier_key: Mapped[str]
    version: Mapped[str | None]
    is_centralized: Mapped[bool]


class Control(Base):
    __tablename__ = "control"
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
    __tablename__ = "control_match"
    source_control_id: Mapped[str] = mapped_column(ForeignKey("control.id"))
    target_control_id: Mapped[str] = mapped_column(ForeignKey("control.id"))
    match_level: Mapped[int]

    source: Mapped[Control] = relationship(foreign_keys=[source_control_id])


# --- The application

engine = create_engine(os.environ.get(DATABASE, "sqlite://"))
app = FastAPI()
bearer = HTTPBearer()


def open_session() -> Iterator[Session]:
    with Session(engine) as session:
        yield session


CurrentSession = Annotated[Session, Depends(open_session)]


def find_user(session: CurrentSession, credentials: Annotated[HTTPAuthorizationCredentials, Depends(bearer)]) -> str:
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
    member = select(Membership.id).where(Membership.organization_id == organization_id, Membership.user_id == user_id)
    if session.scalar(member) is None:
        raise HTTPException(404)
    adoptions = select(FrameworkAdoption.framework_id).where(FrameworkAdoption.organization_id == organization_id)
    adopted = set(session.scalars(adoptions))
    total = session.scalar(select(func.count()).select_from(Control).where(Control.framework_id.in_(adopted)))
    effective, coverage = EffectiveCoverage, ControlCoverage
    rows = session.execute(
        select(Control, effective, coverage)
        .join(Control.framework)
        .join(effective, (effective.control_id == Control.id) & (effective.organization_id == organization_id))
        .outerjoin(coverage, (coverage.control_id == Control.id) & (coverage.organization_id == organization_id))
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
    items = [to_item(*row, adopted) for row in rows]
    return ControlPage(items=items, total=total or 0, page=page, limit=limit)


def to_item(control: Control, effective: EffectiveCoverage, coverage: ControlCoverage | None, adopted: set[str]) -> Any:
    values = {name: getattr(control, name, None) for name in wire.Control.model_fields} | {
        "coverage": {
            "coverage_status": coverage.coverage_status if coverage else "NONE",
            "coverage_gap": coverage and coverage.coverage_gap,
        },
        "effective_coverage_status": effective.status,
        "is_indirectly_covered": effective.is_indirect,
        "source_matches": [
            {"id": match.id, "match_level": COVERAGE_STATUSES[match.match_level], "matched_control": match.source}
            for match in sorted(control.source_matches, key=in_order)
            if match.source.framework_id in adopted
        ],
    }
    return wire.Control.model_validate(values, from_attributes=True)


def in_order(match: ControlMatch) -> tuple[str, str, int, str]:
    """The order of matches: by framework, then in catalog order."""
    source = match.source
    return source.framework.identifier_key, source.framework_id, source.position, match.id


def create_app() -> FastAPI:
    return app
