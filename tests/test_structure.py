"""The structure of the source: which package may import which, no circles, no file that has grown too long."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.cells import each

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "normata"
LONGEST = 400  # lines of a file; a longer one has more than one reason to change

# What each package (or module at the top) may import. Arrows go one way: cli and app → web → domains → changes →
# schema → db.
_BASE = {"db", "errors", "schema"}
_DOMAIN = _BASE | {"changes"}
MAY_IMPORT: dict[str, set[str]] = {
    "__init__": set(),
    "__main__": {"cli"},
    "errors": set(),
    "settings": set(),
    "log": {"log_lines", "settings"},
    "log_lines": set(),
    "db": {"errors", "settings"},
    "schema": {"db", "errors"},
    "changes": _BASE,
    "identity": _DOMAIN,
    "events": _DOMAIN | {"identity", "records"},
    "records": _DOMAIN | {"identity"},
    "frameworks": _DOMAIN | {"identity"},
    "notifications": _DOMAIN | {"identity", "records", "frameworks"},
    "tables": _DOMAIN | {"identity", "events", "records", "frameworks", "notifications"},
    "wiring": _DOMAIN | {"events", "notifications"},
    "bundle": _DOMAIN | {"identity", "events", "records", "frameworks", "notifications", "tables"},
    "erasure": _DOMAIN | {"identity", "events", "notifications", "tables"},
    "demo": _DOMAIN | {"identity", "records", "bundle", "settings"},
    "web": _DOMAIN
    | {"__init__", "events", "identity", "records", "frameworks", "notifications", "bundle", "demo"}
    | {"log", "settings"},
    "console": _DOMAIN | {"identity", "notifications", "records", "web", "settings"},
    "operations": {"changes", "console", "db", "events", "identity", "notifications", "tables", "web", "wiring"},
    "app": {
        "changes",
        "console",
        "db",
        "events",
        "identity",
        "log",
        "notifications",
        "operations",
        "settings",
        "web",
        "wiring",
    },
    "cli": _DOMAIN
    | {"console", "erasure"}
    | {"__init__", "events", "identity", "frameworks", "records", "bundle", "demo", "log", "web", "operations"}
    | {"settings", "tables", "wiring"},
}


def modules() -> Iterator[tuple[str, Path]]:
    """The dotted name of every module of the package, without ``normata``, and its file."""
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if "versions" not in parts:  # migrations are history: they stay as they were
            yield ".".join(parts), path


def imports(path: Path) -> Iterator[str]:
    """What a file imports of the package, wherever in the file: dotted names without ``normata``."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "normata":
            # `from normata import errors` imports a module, `from normata import __version__` the package.
            names = [f"normata.{'__init__' if alias.name.startswith('__') else alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        yield from (name.removeprefix("normata.") for name in names if name.startswith("normata."))


def python_files() -> list[Path]:
    """Every Python file that people write here."""
    return [
        path for folder in ("src", "tests", "benchmarks", "examples") for path in sorted((ROOT / folder).rglob("*.py"))
    ]


@each(("name", "path"), modules())
def test_a_module_imports_only_what_its_package_may(name: str, path: Path) -> None:
    package = name.partition(".")[0]
    found = {imported.partition(".")[0] for imported in imports(path)} - {package}
    assert found <= MAY_IMPORT[package], f"{name} imports {', '.join(sorted(found - MAY_IMPORT[package]))}"


def test_packages_do_not_go_in_circles() -> None:
    remaining = {package: set(allowed) for package, allowed in MAY_IMPORT.items()}
    while leaves := {package for package, allowed in remaining.items() if not allowed & remaining.keys()}:
        for package in leaves:
            del remaining[package]
    assert not remaining


def test_every_package_is_known() -> None:
    assert {name.partition(".")[0] for name, _ in modules()} == MAY_IMPORT.keys()


def test_no_file_is_too_long() -> None:
    lines = {
        str(path.relative_to(ROOT)): path.read_text("utf-8").count("\n")
        for path in python_files()
        if "versions" not in path.parts  # migrations are history: they stay as they were
    }
    assert {path: count for path, count in lines.items() if count > LONGEST} == {}
