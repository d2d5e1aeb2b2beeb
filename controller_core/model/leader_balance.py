"""Whether leaders should go back to their preferred replicas, broker by broker (Kafka's automatic leader rebalance)."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from controller_core.model.ids import BrokerId, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """Who should lead a partition, who does, and whether the one who should could."""

    preferred: BrokerId
    leader: BrokerId
    can_lead: bool
    """The preferred replica is live and in sync: an election that must fail is not held (KAFKA-9866)."""


def partitions_to_rebalance(
    leaderships: Mapping[TopicPartition, Leadership], threshold_percent: int
) -> list[TopicPartition]:
    """The partitions to elect their preferred replicas for: of brokers that miss more of theirs than the threshold."""
    missed = {partition: each for partition, each in leaderships.items() if each.leader != each.preferred}
    total = _by_preferred(leaderships.values())
    missing = _by_preferred(missed.values())
    over = {broker for broker, count in missing.items() if count * 100 > threshold_percent * total[broker]}
    return [partition for partition, each in missed.items() if each.preferred in over and each.can_lead]


def _by_preferred(leaderships: Iterable[Leadership]) -> Counter[BrokerId]:
    return Counter(each.preferred for each in leaderships)
