"""The tables by their names in SQL."""

from __future__ import annotations

from normata.core.schema.table import Table

_KNOWN: dict[str, type[Table]] = {}


def table_named(name: str) -> type[Table]:
    """The table that SQL calls ``name``. Raises KeyError where no module that declares it has been imported."""
    if name not in _KNOWN:
        _KNOWN.update((str(mapper.class_.__tablename__), mapper.class_) for mapper in Table.registry.mappers)
    return _KNOWN[name]


def tables() -> list[type[Table]]:
    """All tables whose modules have been imported."""
    return [mapper.class_ for mapper in Table.registry.mappers]
