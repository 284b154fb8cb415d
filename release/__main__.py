"""Makes a release in ``dist``: sdist, wheel, a bill of materials, and the checksums of all three.

The wheel is built from the unpacked sdist, so a release that was made is proof that the sdist is whole.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from release.bill import bill_of_materials

ROOT = Path(__file__).parents[1]


def make(root: Path, folder: Path) -> list[Path]:
    """Make the release of the source in ``root``, in an empty ``folder``: its files, the checksums last."""
    moment = _moment_of_commit(root)
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(moment)}  # the same source makes the same bytes
    _build("sdist", root, folder, environment)
    [sdist] = folder.glob("*.tar.gz")
    with TemporaryDirectory(prefix="normata-release-") as unpacked:
        with tarfile.open(sdist) as archive:
            archive.extractall(unpacked, filter="data")
        [source] = Path(unpacked).iterdir()
        _build("wheel", source, folder, environment)
    [wheel] = folder.glob("*.whl")
    version = wheel.name.split("-")[1]
    bill = folder / f"normata-{version}.cdx.json"
    document = bill_of_materials(root, version, wheel, moment)
    bill.write_text(f"{json.dumps(document, indent=2, ensure_ascii=False)}\n", encoding="utf-8")
    files = [sdist, wheel, bill]
    sums = folder / "SHA256SUMS"  # for `sha256sum --check`
    lines = [f"{sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    sums.write_text("".join(lines), encoding="utf-8")
    return [*files, sums]


def _moment_of_commit(root: Path) -> int:
    """When the commit was made, in seconds since 1970."""
    command = ["git", "-C", str(root), "log", "-1", "--format=%ct"]
    return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def _build(target: str, source: Path, folder: Path, environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder.absolute())]
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the {target} could not be built:\n{done.stdout}{done.stderr}")


def main() -> None:
    """Make the release of this source. What an earlier one has left in ``dist`` goes."""
    folder = ROOT / "dist"
    folder.mkdir(exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    for file in make(ROOT, folder):
        print(file.relative_to(ROOT))


if __name__ == "__main__":
    main()
