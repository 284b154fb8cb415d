"""The wheel, installed into an empty environment with the pinned dependencies: what it carries is enough."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from normata.console.pages import environment
from normata.console.static import Assets
from normata.core.http import documentation, openapi
from normata.operations import OPERATIONS
from tests.server import PLAIN, reserved_port, wait_until_ready

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "src" / "normata" / "console" / "static"
EXPECTED = documentation.files(openapi.document(OPERATIONS))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    _run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT)]
    )
    [found] = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def programs(wheel: Path) -> Path:
    """The folder of programs of an environment that has the wheel, what it needs, and nothing else."""
    folder = wheel.parent
    _run([sys.executable, "-m", "venv", str(folder / "venv")])
    found = folder / "venv" / "bin"
    pip = [str(found / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    _run([*pip, "--no-deps", "--require-hashes", "-r", str(ROOT / "requirements" / "run.txt")])
    _run([*pip, "--no-deps", str(wheel)])
    _run([str(found / "python"), "-m", "pip", "check", "-q"])
    return found


@pytest.fixture(scope="module")
def console(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """Somebody who has signed in to the demo that the installed program serves."""
    folder = tmp_path_factory.mktemp("demo")
    with reserved_port() as port:
        command = [str(programs / "normata"), "demo", "--port", str(port)]
        with subprocess.Popen(command, cwd=folder, env=_environment(), stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            printed = ""
            for line in process.stdout:
                printed += line
                if line.startswith("Stop with"):
                    break
            base = f"http://127.0.0.1:{port}"
            wait_until_ready(base, process)
            [secret] = re.findall(r"/sign-in/link/\?secret=(\S+)", printed)
            with httpx2.Client(base_url=base, verify=PLAIN, timeout=30, follow_redirects=True) as client:
                client.headers["Sec-Fetch-Site"] = "same-origin"
                yield _signed_in(client, secret)
            process.terminate()


def _signed_in(client: httpx2.Client, secret: str) -> httpx2.Client:
    answer = client.post("/sign-in/link/", data={"secret": secret})
    assert answer.status_code == 200, answer.text
    return client


def test_the_wheel_has_the_documentation_of_its_own_operations(wheel: Path) -> None:
    """It is made when the wheel is built: equal to one that is made now."""
    with zipfile.ZipFile(wheel) as archive:
        found = {name: gzip.decompress(archive.read(f"normata/{name}")) for name in EXPECTED}
    assert found == {name: gzip.decompress(content) for name, content in EXPECTED.items()}


def test_the_documentation_is_served_as_it_was_made(console: httpx2.Client) -> None:
    """By no process of its own: the environment has no source to make it from but the wheel's."""
    assert console.get("/openapi.json").content == gzip.decompress(EXPECTED[documentation.OPENAPI])
    assert console.get("/docs/").content == gzip.decompress(EXPECTED[documentation.REFERENCE])


def test_the_templates_are_compiled(programs: Path) -> None:
    """All of them, and these are used."""
    script = """if True:
        import sys
        from normata.console.pages import environment
        print(*(environment().get_template(name).filename for name in sys.argv[1:]), sep="\\n")"""
    names = environment().list_templates()
    printed = subprocess.run(
        [str(programs / "python"), "-c", script, *names],
        env=_environment(),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    files = printed.splitlines()
    assert len(files) == len(names)
    assert [file for file in files if "/normata/console/compiled/" not in file] == []


def test_the_console_opens(console: httpx2.Client) -> None:
    page = console.get("/app/harbourlight-robotics/controls/?frameworks=iso-27001-2022")
    assert page.status_code == 200
    assert "Labelling of information" in page.text
    assert "Covered by mapping" in page.text  # a text of texts.en.json


def test_styles_and_scripts_are_carried_as_they_are(console: httpx2.Client) -> None:
    assets = Assets()
    for file in STATIC.iterdir():
        assert console.get(assets.path(file.name)).content == file.read_bytes(), file.name


def _environment() -> dict[str, str]:
    """Nothing leads to the source."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("NORMATA_", "PYTHON"))}


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command, env=_environment(), cwd="/", capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-3_000:]
