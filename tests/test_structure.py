"""The structure of the source: which package may import which, no circles, no file that has grown too long."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.cells import each

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "normata"
LONGEST = 400  # lines of a file; a longer one has more than one reason to change

# The packages, from the ground up: each may import those that stand before it. What a part of the core knows is
# narrower: `CORE_MAY_IMPORT`.
ORDER = (
    *(
        "version",
        "__init__",
        "core",
        "errors",
        "loopback",
        "secret_files",
        "environment",
        "setting_values",
        "settings",
        "core.log_lines",
        "core.log",
    ),
    *("core.db", "core.schema", "core.changes", "core.documents", "core.http"),
    "demo",
    *("identity", "identity.sessions", "identity.tokens", "identity.sign_in", "identity.invitations"),
    *("identity.members", "identity.me", "identity.organizations", "identity.service_accounts"),
    *("identity.provisioning", "identity.openid", "scim"),
    *("files", "frameworks", "coverage", "links.model", "policies.model", "policies.rules", "vendors.rules"),
    *("entitlements.model", "entitlements.rules", "external_ids.model"),
    *("records", "records.archive", "records.many", "records.due", "records.search"),
    "vendors",
    *("links", "recurrences", "evidence", "records.responsibilities", "comments", "names", "events", "webhooks"),
    "findings",
    *("external_ids", "records.batch", "records.imports"),
    *("history", "entitlements", "incidents", "risks", "reports", "audits", "soa_versions", "policies", "adoption"),
    *("own_frameworks", "oscal"),
    *("notifications", "views"),
    *("tables", "bundle", "catalogs", "erasure", "retention", "wiring"),
    *("console", "operations", "mcp", "app", "cli", "__main__"),
)
CORE_MAY_IMPORT: dict[str, set[str]] = {
    "core.log_lines": set(),
    "core.log": {"core.log_lines", "settings"},
    "core.db": {"core.log", "errors", "settings"},
    "core.schema": {"core.db", "errors"},
    "core.changes": {"core.db", "core.log", "core.schema", "errors"},
    "core.documents": {"core.changes"},
    "core.http": {"__init__", "core", "core.changes", "core.db", "core.log", "core.schema", "errors", "settings"},
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
            # `from normata.coverage import engine` imports a module as well.
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        yield from (name.removeprefix("normata.") for name in names if name.startswith("normata."))


def python_files() -> list[Path]:
    """Every Python file that people write here."""
    return [
        path
        for folder in ("src", "tests", "benchmarks", "examples", "release")
        for path in sorted((ROOT / folder).rglob("*.py"))
    ]


def package_of(name: str) -> str:
    """The package of a module: one of two steps where `ORDER` has it, else the folder or module at the top."""
    steps = name.split(".")
    two = ".".join(steps[:2])
    return two if two in ORDER else steps[0]


@each(("name", "path"), modules())
def test_a_module_imports_only_what_its_package_may(name: str, path: Path) -> None:
    package = package_of(name)
    found = {package_of(imported) for imported in imports(path)} - {package}
    above = {other for other in found if ORDER.index(other) > ORDER.index(package)}
    assert not above, f"{name} imports {', '.join(sorted(above))}"
    if package in CORE_MAY_IMPORT:
        assert found <= CORE_MAY_IMPORT[package], f"{name} imports {found - CORE_MAY_IMPORT[package]}"


def test_every_package_is_known() -> None:
    assert {package_of(name) for name, _ in modules()} == set(ORDER)


def test_modules_do_not_import_each_other_in_circles() -> None:
    known = dict(modules())
    remaining = {name: {one for one in imports(path) if one in known} - {name} for name, path in known.items()}
    while leaves := {name for name, imported in remaining.items() if not imported & remaining.keys()}:
        for name in leaves:
            del remaining[name]
    assert not remaining


def test_no_file_is_too_long() -> None:
    lines = {
        str(path.relative_to(ROOT)): path.read_text("utf-8").count("\n")
        for path in python_files()
        if "versions" not in path.parts  # migrations are history: they stay as they were
    }
    assert {path: count for path, count in lines.items() if count > LONGEST} == {}
