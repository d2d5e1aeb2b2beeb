"""What a partition needs in sync: `min.insync.replicas` as it is in effect at its leader.

Kafka asks the topic, then the leader's dynamic configuration, then the default of all brokers, then the leader's own file;
and it never asks for more than the partition has replicas (`Partition.effectiveMinIsr`).
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from kontroller.history.alarms.records import NOWHERE, Position, Replicas, Rules, Seen, Topic


class BrokerConfig(NamedTuple):
    """A broker's `min.insync.replicas`: in its dynamic configuration, and in its own file; each as of a record."""

    position: Position = NOWHERE
    min_isr: int | None = None
    file_position: Position = NOWHERE
    file_min_isr: int | None = None

    def after(self, record: Seen) -> "BrokerConfig":
        """As of a record about it, unless a later one was seen."""
        is_file = record.kind.startswith("broker_static_config")
        if record.position <= (self.file_position if is_file else self.position):
            return self
        if is_file:
            return self._replace(file_position=record.position, file_min_isr=record.min_isr)
        return self._replace(position=record.position, min_isr=record.min_isr)


@dataclass(slots=True, kw_only=True)
class BrokerConfigs:
    """The default of all brokers, as of a record, and what each has of its own."""

    position: Position = NOWHERE
    min_isr: int | None = None
    brokers: dict[int, BrokerConfig] = field(default_factory=dict)

    def see(self, record: Seen) -> bool:
        """Whether a record about one broker, or about all where it names none, changes anything."""
        if record.broker is not None:
            before = self.brokers.get(record.broker) or BrokerConfig()
            after = self.brokers[record.broker] = before.after(record)
            return (before.min_isr, before.file_min_isr) != (after.min_isr, after.file_min_isr)
        if record.position <= self.position or record.kind.startswith("broker_static_config"):
            return False
        before_min_isr, self.position, self.min_isr = self.min_isr, record.position, record.min_isr
        return before_min_isr != record.min_isr

    def forget_before(self, oldest: Position) -> None:
        """Forgets what a snapshot does not name that began at `oldest`.

        What a broker's file says is asked for after a new term's first snapshot, and until then it is what it was."""
        if self.position < oldest:
            self.position, self.min_isr = NOWHERE, None
        for broker, config in self.brokers.items():
            if config.position < oldest:
                self.brokers[broker] = config._replace(position=NOWHERE, min_isr=None)

    def needed(self, topic: Topic, replicas: Replicas, rules: Rules) -> int:
        """How many replicas a partition needs in sync; what no record says, the rules say."""
        leader = self.brokers.get(-1 if replicas.leader is None else replicas.leader) or BrokerConfig()
        told = (topic.min_isr, leader.min_isr, self.min_isr, leader.file_min_isr)
        needed = next((it for it in told if it is not None), rules.min_isr)
        return needed if replicas.assigned is None else min(needed, replicas.assigned)
