"""The brokers that refused control requests, until they obey, and the time to send them everything again."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from controller_core.model.ids import (
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionEpoch,
    TopicPartition,
)
from controller_core.model.metadata import Broker

FIRST_PAUSE_MS: Final = 1000
LONGEST_PAUSE_MS: Final = 60_000
WHOLE: Final = None
"""Stands among refused partitions for a request that was refused as a whole."""


class OfEpoch(NamedTuple):
    """Stands among refused partitions for one that was refused because of its leader epoch."""

    partition: TopicPartition


RefusalScope: TypeAlias = TopicPartition | OfEpoch | None


class KnownEpochs(NamedTuple):
    """The epochs of a partition that a broker knows, or may refuse for ever."""

    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch | None = None
    """Not None if it may be later than in ZooKeeper."""


@dataclass(slots=True, kw_only=True)
class Refusal:
    """A broker that has not obeyed."""

    broker_epoch: BrokerEpoch
    """The life of the broker in which it refused."""
    reason: str
    """The request and the error, such as `UpdateMetadata: unknown_server_error`."""
    in_a_row: dict[RefusalScope, int] = field(default_factory=dict)
    """The number of times in a row that the broker was sent everything and refused something."""
    in_a_row_before: dict[RefusalScope, int] = field(default_factory=dict)
    """The same numbers when it was sent everything for the last time."""
    sent_again_under: ControllerEpoch | None = None
    """The controller epoch under which it was sent everything after the last refusal; None if that is still to be done."""
    epochs: dict[TopicPartition, KnownEpochs] = field(default_factory=dict)
    """The partitions that are sent again under later epochs than these."""

    @property
    def pause_ms(self) -> int:
        """Milliseconds until the broker is sent everything again: 1 s after the first whole refusal, then doubled up to
        60 s."""
        return int(min(FIRST_PAUSE_MS * 2 ** min(self.in_a_row.get(WHOLE, 1) - 1, 10), LONGEST_PAUSE_MS))

    def count(self, refused: Iterable[RefusalScope]) -> None:
        """Count refusals, each once for each time that the broker was sent everything."""
        self.in_a_row |= {each: self.in_a_row_before.get(each, 0) + 1 for each in refused}


class Refusals:
    """The refusals of one term."""

    def __init__(self) -> None:
        self._standing: dict[BrokerId, Refusal] = {}
        self._epoch_raises = 0

    @property
    def epoch_raises(self) -> int:
        """The number of times that this term raised the controller epoch because a broker refused it as stale."""
        return self._epoch_raises

    def note_epoch_raise(self) -> None:
        """Count a raise of the controller epoch."""
        self._epoch_raises += 1

    def find(self, broker: BrokerId, epoch: BrokerEpoch) -> Refusal | None:
        """Return the refusal of a broker in its present life."""
        refusal = self._standing.get(broker)
        return refusal if refusal is not None and refusal.broker_epoch == epoch else None

    def add(self, broker: BrokerId, epoch: BrokerEpoch, reason: str) -> tuple[Refusal, bool]:
        """Record a refusal, without a count. Return it, and True if sending everything again must be scheduled."""
        known = self.find(broker, epoch)
        if known is None:
            known = self._standing[broker] = Refusal(broker_epoch=epoch, reason=reason)
            return known, True
        known.reason = reason
        if known.sent_again_under is None:
            return known, False
        known.sent_again_under = None
        known.in_a_row_before, known.in_a_row = known.in_a_row, {}
        return known, True

    def end(self, broker: BrokerId) -> None:
        """Remove the refusal of a broker that obeyed."""
        self._standing.pop(broker, None)

    def find_standing(self, brokers: Mapping[BrokerId, Broker]) -> dict[BrokerId, str]:
        """Return the reasons of those among the registered brokers that have not obeyed in their present life."""
        return {
            broker: refusal.reason
            for broker, refusal in sorted(self._standing.items())
            if (known := brokers.get(broker)) is not None and known.epoch == refusal.broker_epoch
        }

    def find_refusing(self, partition: TopicPartition, brokers: Mapping[BrokerId, Broker]) -> set[BrokerId]:
        """Return those among the registered brokers that refused a partition when they were last sent it."""
        return {broker for broker in self.find_standing(brokers) if partition in self._standing[broker].in_a_row}
