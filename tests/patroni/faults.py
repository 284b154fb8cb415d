"""What happens to clusters: each fault befalls the primary, or a part beside it, and passes by itself or is mended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.patroni.cluster import PatroniCluster
from tests.patroni.watch import Normata

Befall = Callable[[PatroniCluster, Sequence[Normata]], None]


@dataclass(frozen=True)
class Fault:
    """One fault: what it does, and for how many seconds it is watched from its beginning on."""

    name: str
    befall: Befall
    seconds: float


def _kill_postgres(cluster: PatroniCluster, _processes: Sequence[Normata]) -> None:
    cluster.primary().kill_postgres()


def _switch_over(cluster: PatroniCluster, _processes: Sequence[Normata]) -> None:
    primary = cluster.primary()
    status, said = primary.ask("POST", "/switchover", {"leader": primary.name}, timeout=60)
    assert status == 200, said


def _lose_a_node(cluster: PatroniCluster, _processes: Sequence[Normata]) -> None:
    cluster.primary().kill()


def _freeze_postgres(cluster: PatroniCluster, _processes: Sequence[Normata]) -> None:
    primary = cluster.primary()
    primary.freeze_postgres()
    time.sleep(30)
    primary.thaw()


def _freeze_a_node(cluster: PatroniCluster, _processes: Sequence[Normata]) -> None:
    primary = cluster.primary()
    primary.freeze()
    time.sleep(45)
    primary.thaw()


def _kill_patroni(cluster: PatroniCluster, _processes: Sequence[Normata]) -> None:
    cluster.primary().kill_patroni()


def _lose_etcd(seconds: float) -> Befall:
    def befall(cluster: PatroniCluster, _processes: Sequence[Normata]) -> None:
        cluster.etcd.kill()
        time.sleep(seconds)
        cluster.etcd.start()

    return befall


def _restart_haproxy(cluster: PatroniCluster, _processes: Sequence[Normata]) -> None:
    cluster.haproxy.stop()
    cluster.haproxy.start()


def _roll_normata(_cluster: PatroniCluster, processes: Sequence[Normata]) -> None:
    for process in processes:
        process.stop()
        process.start()


FAULTS = (
    Fault("kill postgres", _kill_postgres, 30),
    Fault("switchover", _switch_over, 20),
    Fault("lose a node", _lose_a_node, 45),
    Fault("freeze postgres", _freeze_postgres, 50),
    Fault("freeze a node", _freeze_a_node, 65),
    Fault("kill patroni", _kill_patroni, 55),
    Fault("etcd away 10 s", _lose_etcd(10), 30),
    Fault("etcd away 40 s", _lose_etcd(40), 60),
    Fault("restart haproxy", _restart_haproxy, 12),
    Fault("roll normata", _roll_normata, 15),
)
