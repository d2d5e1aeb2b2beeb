"""The effective `min.insync.replicas` of a partition at its leader.

Kafka uses the topic's value, then the leader's dynamic configuration, then the default of all brokers, then the
leader's own file. It never requires more than the partition's replicas (`Partition.effectiveMinIsr`).
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from kontroller.history.alarms.records import NOWHERE, Position, Replicas, Rules, Seen, Topic


class BrokerConfig(NamedTuple):
    """A broker's `min.insync.replicas`, in its dynamic configuration and in its own file, each with the record that
    states it."""

    position: Position = NOWHERE
    min_isr: int | None = None
    file_position: Position = NOWHERE
    file_min_isr: int | None = None

    def apply(self, record: Seen) -> "BrokerConfig":
        """Return the configuration after a record about it, unless a later one was applied."""
        is_file = record.kind.startswith("broker_static_config")
        if record.position <= (self.file_position if is_file else self.position):
            return self
        if is_file:
            return self._replace(file_position=record.position, file_min_isr=record.min_isr)
        return self._replace(position=record.position, min_isr=record.min_isr)

    def rewind(self, position: Position) -> "BrokerConfig":
        return self._replace(position=min(self.position, position), file_position=min(self.file_position, position))


@dataclass(slots=True, kw_only=True)
class BrokerConfigs:
    """The default of all brokers with the record that states it, and the configuration of each broker."""

    position: Position = NOWHERE
    min_isr: int | None = None
    brokers: dict[int, BrokerConfig] = field(default_factory=dict)

    def see(self, record: Seen) -> bool:
        """Apply a record about a broker, or about all if it names none. Return True if that changes a value."""
        if record.broker is not None:
            before = self.brokers.get(record.broker) or BrokerConfig()
            after = self.brokers[record.broker] = before.apply(record)
            return (before.min_isr, before.file_min_isr) != (after.min_isr, after.file_min_isr)
        if record.position <= self.position or record.kind.startswith("broker_static_config"):
            return False
        before_min_isr, self.position, self.min_isr = self.min_isr, record.position, record.min_isr
        return before_min_isr != record.min_isr

    def rewind(self, position: Position) -> None:
        """Treat all values as stated at `position` or before, so that all records after it apply."""
        self.position = min(self.position, position)
        self.brokers = {broker: config.rewind(position) for broker, config in self.brokers.items()}

    def forget_before(self, oldest: Position) -> None:
        """Forget what the snapshot that began at `oldest` does not name.

        The value of a broker's file stays, because brokers are asked for it only after a new term's first snapshot."""
        if self.position < oldest:
            self.position, self.min_isr = NOWHERE, None
        for broker, config in self.brokers.items():
            if config.position < oldest:
                self.brokers[broker] = config._replace(position=NOWHERE, min_isr=None)

    def count_needed(self, topic: Topic, replicas: Replicas, rules: Rules) -> int:
        """Return the number of in-sync replicas that a partition needs. Without a record, the rules decide."""
        leader = self.brokers.get(-1 if replicas.leader is None else replicas.leader) or BrokerConfig()
        told = (topic.min_isr, leader.min_isr, self.min_isr, leader.file_min_isr)
        needed = next((it for it in told if it is not None), rules.min_isr)
        return needed if replicas.assigned is None else min(needed, replicas.assigned)
