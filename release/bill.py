"""The bill of materials of a release: what is installed with it, in CycloneDX 1.6 (ECMA-424)."""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)(?: ; (.+?))?((?: --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_LONGEST_LICENSE = 100  # some packages have the whole text where its name should be


class Pinned(NamedTuple):
    """A package of a file of requirements, with the SHA-256 of its files. ``marker`` says where it is needed."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]

    @property
    def purl(self) -> str:
        """Its package URL (ECMA-427), which is also its name in the bill."""
        return f"pkg:pypi/{self.name}@{self.version}"


def pinned(requirements: str) -> list[Pinned]:
    """The packages of a file of requirements. Raises ValueError for a line that is not understood."""
    joined = re.sub(r" \\\n\s+", " ", requirements)
    found = [
        Pinned(_canonical(name), version, marker, tuple(re.findall(r"sha256:([0-9a-f]{64})", hashes)))
        for name, version, marker, hashes in _PINNED.findall(joined)
    ]
    lines = [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]
    if len(found) != len(lines):
        raise ValueError("a line of the requirements is not name==version with hashes")
    return found


def bill_of_materials(root: Path, version: str, wheel: Path, moment: int) -> dict[str, Any]:
    """The bill of a wheel and of all that ``requirements/run.txt`` pins, at a ``moment`` in seconds since 1970."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    packages = pinned((root / "requirements" / "run.txt").read_text("utf-8"))
    own = f"pkg:pypi/normata@{version}"
    references = {package.name: package.purl for package in packages}
    digest = sha256(wheel.read_bytes()).hexdigest()
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, f'{own}#{digest}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "normata",
                "version": version,
                "description": project["description"],
                "hashes": [{"alg": "SHA-256", "content": digest}],
                "licenses": [{"expression": project["license"]}],
                "purl": own,
            },
        },
        "components": [_component(package) for package in packages],
        "dependencies": [
            {"ref": own, "dependsOn": _needed(project["dependencies"], references)},
            *({"ref": package.purl, "dependsOn": _needed(_requires(package), references)} for package in packages),
        ],
    }


def _component(package: Pinned) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        # A package has several files; which of them is installed depends on the machine.
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in package.hashes],
        "purl": package.purl,
    }
    installed = _installed(package)
    licenses = [] if installed is None else _licenses(installed)
    if licenses:
        component["licenses"] = licenses
    if package.marker:
        component["properties"] = [{"name": "normata:marker", "value": package.marker}]
    return component


def _licenses(installed: Distribution) -> list[dict[str, Any]]:
    """The licenses of a package, as it declares them: an SPDX expression, or a name."""
    metadata = installed.metadata
    if "License-Expression" in metadata:
        return [{"expression": metadata["License-Expression"]}]
    name = metadata["License"].strip() if "License" in metadata else ""
    if name and len(name) <= _LONGEST_LICENSE and "\n" not in name:
        return [{"license": {"name": name}}]
    classifiers = [one for one in metadata.get_all("Classifier") or [] if one.startswith("License :: ")]
    return [{"license": {"name": one.rpartition(" :: ")[2]}} for one in classifiers]


def _requires(package: Pinned) -> list[str]:
    """What a package declares to need, without its extras. Of one that this machine does not need nothing is known."""
    installed = _installed(package)
    requires = [] if installed is None else installed.requires or []
    return [line for line in requires if not re.search(r"\bextra\s*==", line)]


def _needed(requires: list[str], references: dict[str, str]) -> list[str]:
    """The packages of the bill that these lines name."""
    names = {_canonical(match[0]) for line in requires if (match := _NAME.match(line))}
    return sorted(references[name] for name in names & references.keys())


def _installed(package: Pinned) -> Distribution | None:
    """The package as it is installed here, if it is there in this version: its metadata is what the bill takes."""
    try:
        found = distribution(package.name)
    except PackageNotFoundError:
        return None
    return found if found.version == package.version else None


def _canonical(name: str) -> str:
    """A name as registries compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
