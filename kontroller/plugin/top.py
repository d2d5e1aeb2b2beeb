"""The partitions that need attention most, from the statuses of topics and moves."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kontroller.plugin.objects import ENDED, Seen
from kontroller.screen import format_ids, format_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Ailing:
    """A partition that needs attention, and the reason."""

    namespace: str
    cluster: str
    """The KafkaCluster: NAME, or NAMESPACE/NAME if it is in another namespace."""
    topic: str
    partition: int
    trouble: str
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    message: str | None = None

    @property
    def rank(self) -> tuple[int, int, int, str, str, str, int]:
        """Sort key, worst first: without a leader, then the most missing replicas, then the most replicas."""
        missing = len(set(self.replicas) - set(self.isr))
        return (
            self.trouble != "offline",
            -missing,
            -len(self.replicas),
            self.namespace,
            self.cluster,
            self.topic,
            self.partition,
        )

    def make_json(self) -> dict[str, Any]:
        return asdict(self)


def find_ailing(objects: Iterable[Seen]) -> list[Ailing]:
    """Return the partitions that need attention, worst first. A move's message has precedence over its topic's."""
    found: dict[tuple[str, str, str, int], Ailing] = {}
    for each in sorted(objects, key=lambda each: each.key.kind != "KafkaTopic"):
        for partition in each.status.get("partitions") or ():
            trouble = _find_trouble(partition)
            if trouble is not None and each.key.kind in ("KafkaTopic", "PartitionReassignment"):
                ailing = _make_ailing(each, partition, trouble)
                found[ailing.namespace, ailing.cluster, ailing.topic, ailing.partition] = ailing
    return sorted(found.values(), key=lambda each: each.rank)


def lines(found: Sequence[Ailing], most: int) -> list[str]:
    """Return the screen."""
    rows = [
        (
            e.namespace,
            e.cluster,
            e.topic,
            e.partition,
            e.trouble,
            e.leader,
            format_ids(e.replicas),
            format_ids(e.isr),
            e.message,
        )
        for e in found[:most]
    ]
    heads = ("NAMESPACE", "CLUSTER", "TOPIC", "PARTITION", "TROUBLE", "LEADER", "REPLICAS", "ISR", "WHY")
    more = [f"... and {len(found) - most} more"] if len(found) > most else []
    return [*format_table(heads, rows), *more] or ["No partition of a KafkaTopic needs attention."]


def _find_trouble(partition: Mapping[str, Any]) -> str | None:
    replicas, isr, leader = partition.get("replicas") or (), partition.get("isr") or (), partition.get("leader")
    if partition.get("step") in ENDED:
        return None  # a final step describes the past, not the partition's present state
    if leader is None or leader < 0:
        return "offline"
    if partition.get("step") not in (None, "Waiting"):
        return str(partition["step"])
    if set(replicas) - set(isr):
        return "under-replicated"
    return "not the preferred leader" if replicas and leader != replicas[0] else None


def _make_ailing(seen: Seen, partition: Mapping[str, Any], trouble: str) -> Ailing:
    namespace, of = seen.key.namespace, seen.raw["spec"]["clusterRef"]
    elsewhere = of.get("namespace") or namespace
    return Ailing(
        namespace=namespace,
        cluster=of["name"] if elsewhere == namespace else f"{elsewhere}/{of['name']}",
        topic=partition["topic"],
        partition=partition["partition"],
        trouble=trouble,
        leader=partition.get("leader"),
        replicas=tuple(partition.get("replicas") or ()),
        isr=tuple(partition.get("isr") or ()),
        message=partition.get("message"),
    )
