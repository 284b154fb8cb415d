"""The image: built of a release, and run, where there is podman, or buildah alone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest

from normata import __version__
from release.__main__ import make
from tests.server import free_port, wait_until_ready

ROOT = Path(__file__).parents[2]
PODMAN, BUILDAH = shutil.which("podman"), shutil.which("buildah")

pytestmark = pytest.mark.skipif(not (PODMAN or BUILDAH), reason="there is neither podman nor buildah to build an image")


def run(*command: str, timeout: float = 1_800) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
    return done.stdout


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of the image of this source."""
    folder = tmp_path_factory.mktemp("image")
    (folder / "dist").mkdir()
    make(ROOT, folder / "dist")
    for name in ("deploy", "requirements"):
        shutil.copytree(ROOT / name, folder / name)
    name = f"localhost/normata-test-{uuid4().hex}"
    build = [PODMAN, "build"] if PODMAN else [BUILDAH or "", "build"]
    run(*build, "--file", str(folder / "deploy" / "Containerfile"), "--tag", name, str(folder))
    return name


def test_the_image_has_this_version(image: str) -> None:
    if PODMAN:
        assert run(PODMAN, "run", "--rm", image, "--version") == f"normata {__version__}\n"
        return
    container = run(BUILDAH or "", "from", image).strip()
    try:
        assert run(BUILDAH or "", "run", container, "--", "normata", "--version") == f"normata {__version__}\n"
    finally:
        run(BUILDAH or "", "rm", container)


@pytest.mark.skipif(not PODMAN, reason="buildah alone publishes no port")
def test_the_image_serves(image: str) -> None:
    port = free_port()
    command = [PODMAN or "", "run", "--rm", "--publish", f"127.0.0.1:{port}:8000", "--read-only", image]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until_ready(f"http://127.0.0.1:{port}", process)
        finally:
            process.terminate()
            process.wait(60)
