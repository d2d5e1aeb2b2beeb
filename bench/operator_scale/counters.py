"""The numbers of writes: from the API server's counters, and from ZooKeeper's last transaction id."""

import re
import socket
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from bench.operator_scale.surroundings import Surroundings
from controller_operator.resources import KINDS
from devcluster.running.scraping import open_locally

_WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_OURS: Final = frozenset({*(kind.definition.plural for kind in KINDS), "events"})
_REQUESTS: Final = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
_ZXID: Final = re.compile(rb"Zxid: 0x([0-9a-f]+)")
_COUNTER_BITS: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Writes since some beginning, or of a period."""

    kubernetes: Counter[str] = field(default_factory=Counter)
    """Requests that write our kinds and events, by verb and resource."""
    zookeeper: int = 0
    """Transactions, including the opening and closing of sessions."""

    def subtract(self, before: "Written") -> "Written":
        return Written(kubernetes=self.kubernetes - before.kubernetes, zookeeper=self.zookeeper - before.zookeeper)


def count_writes(around: Surroundings) -> Written:
    """Return the writes to both servers so far."""
    metrics = around.kubernetes.kubectl("get", "--raw", "/metrics")
    return Written(kubernetes=requests_of(metrics), zookeeper=transactions_of(_ask(around.zookeeper.port, b"srvr")))


def requests_of(metrics: str) -> Counter[str]:
    """Return the writing requests in an API server's metrics, as `PATCH kafkatopics/status`."""
    found: Counter[str] = Counter()
    for labels, value in _REQUESTS.findall(metrics):
        named = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if named["verb"] in _WRITES and named["resource"] in _OURS:
            part = f"/{named['subresource']}" if named["subresource"] else ""
            found[f"{named['verb']} {named['resource']}{part}"] += int(float(value))
    return found


def transactions_of(answer: bytes) -> int:
    """Return the number of transactions of a ZooKeeper's present term, from its answer to `srvr`."""
    match = _ZXID.search(answer)
    if match is None:
        raise ValueError(f"ZooKeeper does not say what it wrote last: {answer!r}")
    return int(match[1], 16) & ((1 << _COUNTER_BITS) - 1)


def looks(metrics_port: int) -> int:
    """Return the number of an operator's reconciliations of KafkaTopics. Raises OSError."""
    with open_locally(f"http://127.0.0.1:{metrics_port}/metrics") as answer:
        families = text_string_to_metric_families(answer.read().decode())
    samples = (sample for family in families for sample in family.samples)
    return int(
        sum(
            sample.value
            for sample in samples
            if sample.name == "kontroller_operator_reconciliations_total" and sample.labels["kind"] == "KafkaTopic"
        )
    )


def memory_mb(pid: int) -> tuple[float, float]:
    """Return the resident memory of a process: now, and its maximum so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    now, most = (re.search(rf"{name}:\s+(\d+) kB", status) for name in ("VmRSS", "VmHWM"))
    assert now is not None
    assert most is not None
    return int(now[1]) / 1024, int(most[1]) / 1024


def _ask(port: int, word: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(word)
        return b"".join(iter(lambda: connection.recv(4096), b""))
