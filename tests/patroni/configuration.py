"""The configuration of each part, as docs/postgresql.md shows it to operators; on loopback, and with shorter times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

TTL = 20
LOOP_WAIT = 5
RETRY_TIMEOUT = 5  # Patroni wants a ttl of at least loop_wait + 2 * retry_timeout


def patroni(
    name: str, *, folder: Path, binaries: Path, password: str, port: int, rest_port: int, etcd_port: int
) -> dict[str, Any]:
    """The configuration of a member; Patroni reads JSON, which is YAML as well."""
    return {
        "scope": "normata",
        "name": name,
        "restapi": {"listen": f"127.0.0.1:{rest_port}", "connect_address": f"127.0.0.1:{rest_port}"},
        "etcd3": {"hosts": f"127.0.0.1:{etcd_port}"},
        "bootstrap": {
            "dcs": {
                "ttl": TTL,
                "loop_wait": LOOP_WAIT,
                "retry_timeout": RETRY_TIMEOUT,
                "maximum_lag_on_failover": 1048576,
                "synchronous_mode": True,
                "failsafe_mode": True,
                "postgresql": {
                    "use_pg_rewind": True,
                    "parameters": {
                        "max_connections": 100,
                        "shared_buffers": "32MB",
                        "synchronous_commit": "on",
                        "wal_keep_size": "128MB",
                        "max_wal_size": "256MB",
                        "wal_retrieve_retry_interval": "500ms",
                    },
                },
            },
            "initdb": [{"encoding": "UTF8"}, "no-locale", "data-checksums"],
        },
        "postgresql": {
            "listen": f"127.0.0.1:{port}",
            "connect_address": f"127.0.0.1:{port}",
            "data_dir": str(folder / name / "data"),
            "bin_dir": str(binaries),
            "pgpass": str(folder / name / "pgpass"),
            "parameters": {"unix_socket_directories": str(folder), "logging_collector": "off"},
            "authentication": {
                "superuser": {"username": "postgres", "password": password},
                "replication": {"username": "replicator", "password": password},
                "rewind": {"username": "rewinder", "password": password},
            },
            "pg_hba": [
                "local all all trust",
                "host all all 127.0.0.1/32 scram-sha-256",
                "host replication replicator 127.0.0.1/32 scram-sha-256",
            ],
        },
    }


def haproxy(*, port: int, members: dict[str, tuple[int, int]]) -> str:
    """HAProxy's: sessions to a member that is no longer the primary are closed."""
    servers = "\n".join(
        f"    server {name} 127.0.0.1:{port} check port {rest_port}" for name, (port, rest_port) in members.items()
    )
    return f"""\
global
    maxconn 1000
defaults
    mode tcp
    timeout connect 2s
    timeout client 1h
    timeout server 1h
    timeout check 1s
listen postgresql
    bind 127.0.0.1:{port}
    option httpchk OPTIONS /primary
    http-check expect status 200
    default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
{servers}
"""


def pgbouncer(*, folder: Path, port: int, behind: int) -> str:
    """PgBouncer's: transaction mode, and a new attempt soon where a connection to the server failed."""
    return f"""\
[databases]
normata = host=127.0.0.1 port={behind} dbname=normata

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {folder / "users.txt"}
pool_mode = transaction
default_pool_size = 20
query_wait_timeout = 5
server_connect_timeout = 2
server_login_retry = 1
"""
