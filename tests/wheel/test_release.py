"""A release: whole, the same each time, and with the bill of what it installs."""

from __future__ import annotations

import json
import subprocess
import tarfile
from hashlib import sha256
from importlib.metadata import distribution
from pathlib import Path

import pytest

from normata import __version__
from release.__main__ import make
from release.bill import pinned

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "requirements"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return make(ROOT, tmp_path_factory.mktemp("dist"))


def test_all_files_have_the_version_of_the_source(made: list[Path]) -> None:
    sdist, wheel, bill, sums = (file.name for file in made)
    assert sdist == f"normata-{__version__}.tar.gz"  # the wheel is built of it, without git
    assert wheel == f"normata-{__version__}-py3-none-any.whl"
    assert bill == f"normata-{__version__}.cdx.json"
    assert sums == "SHA256SUMS"


def test_the_checksums_are_those_of_the_files(made: list[Path]) -> None:
    folder = made[-1].parent
    done = subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0
    assert {line.split("  ")[1] for line in made[-1].read_text().splitlines()} == {file.name for file in made[:-1]}


def test_the_same_source_makes_the_same_bytes(made: list[Path], tmp_path: Path) -> None:
    again = make(ROOT, tmp_path)
    assert [sha256(file.read_bytes()).hexdigest() for file in again] == [
        sha256(file.read_bytes()).hexdigest() for file in made
    ]


def test_the_sdist_has_what_git_has_and_nothing_else(made: list[Path]) -> None:
    with tarfile.open(made[0]) as archive:
        files = {name.partition("/")[2] for name in archive.getnames()}
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]  # what is not committed yet, too
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert files - {"PKG-INFO"} == set(listed.splitlines()) - {".venv"}


def test_the_bill_names_what_is_installed(made: list[Path]) -> None:
    bill = json.loads(made[2].read_text("utf-8"))
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    own = bill["metadata"]["component"]
    assert (own["name"], own["version"]) == ("normata", __version__)
    assert own["hashes"] == [{"alg": "SHA-256", "content": sha256(made[1].read_bytes()).hexdigest()}]
    packages = pinned((REQUIREMENTS / "run.txt").read_text("utf-8"))
    found = {one["purl"]: {digest["content"] for digest in one["hashes"]} for one in bill["components"]}
    assert found == {package.purl: set(package.hashes) for package in packages}
    licensed = [one["name"] for one in bill["components"] if one.get("licenses")]
    assert {"starlette", "sqlalchemy", "pydantic"} <= set(licensed)


def test_the_bill_says_what_needs_what(made: list[Path]) -> None:
    bill = json.loads(made[2].read_text("utf-8"))
    needed = {one["ref"]: set(one["dependsOn"]) for one in bill["dependencies"]}
    own, components = bill["metadata"]["component"], bill["components"]
    references = {one["bom-ref"] for one in components}
    assert needed.keys() == {own["bom-ref"], *references}
    assert set().union(*needed.values()) <= references
    names = {one["bom-ref"]: one["name"] for one in components}
    assert "starlette" in {names[one] for one in needed[own["bom-ref"]]}
    assert {names[one] for one in needed[f"pkg:pypi/starlette@{distribution('starlette').version}"]} >= {"anyio"}


def test_what_runs_has_no_extras_and_no_tools() -> None:
    files = {
        name: {(one.name, one.version) for one in pinned((REQUIREMENTS / f"{name}.txt").read_text("utf-8"))}
        for name in ("run", "mcp", "oscal", "otel", "pdf", "s3", "build", "dev")
    }
    names = {name for name, _ in files["run"]}
    assert names.isdisjoint({"mcp", "compliance-trestle", "opentelemetry-sdk", "hatchling", "editables"})
    assert "mcp" in {name for name, _ in files["mcp"]}
    assert "compliance-trestle" in {name for name, _ in files["oscal"]}
    assert "opentelemetry-sdk" in {name for name, _ in files["otel"]}
    assert "typst" in {name for name, _ in files["pdf"]} - names
    assert "hatchling" in {name for name, _ in files["build"]}
    assert all(files["run"] < files[name] for name in ("mcp", "oscal", "otel", "pdf", "s3"))  # the same versions
    extras = files["mcp"] | files["oscal"] | files["otel"] | files["pdf"] | files["s3"]
    assert extras | files["build"] <= files["dev"]
