"""What can happen to a controller. An event says only that something happened, never what the state is now.

ZooKeeper's watches are one-shot and coalesce, so a handler reads the present state itself (KAFKA-5502, KAFKA-5879); that
makes two equal events in a row as good as one, and the queue keeps only the first.
"""

from asyncio import Future
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.journal.configs import StaticConfig
from controller_core.model.ids import BrokerEpoch, BrokerId, ControllerEpoch, TopicName
from controller_core.model.metadata import EndsOfLogs
from controller_core.model.quotas.mutation_quota import UNLIMITED, MutationQuota
from controller_core.wire.messages import ControlRequest, ControlResponse


@dataclass(frozen=True, slots=True)
class ControllerChanged:
    """`/controller` was created, written or deleted."""


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """ZooKeeper expired our session."""


@dataclass(frozen=True, slots=True)
class RoleDue:
    """It is time to look at the role again, though nobody wrote `/controller`."""


RoleEvent: TypeAlias = ControllerChanged | SessionEnded | RoleDue
"""What decides whether this process is the controller; all other events are a controller's."""


@dataclass(frozen=True, slots=True)
class BrokersChanged:
    """Brokers registered or vanished."""


@dataclass(frozen=True, slots=True)
class BrokerModified:
    """A live broker rewrote its registration: listeners or features."""

    broker: BrokerId


@dataclass(frozen=True, slots=True)
class TopicsChanged:
    """Topics appeared or vanished."""


@dataclass(frozen=True, slots=True)
class TopicModified:
    """A topic's znode was written: partitions were added, perhaps."""

    topic: TopicName
    others: tuple[TopicName, ...] = ()
    """Other topics that were written before the first was looked at."""


@dataclass(frozen=True, slots=True)
class TopicDeletionsRequested:
    """Topics were marked for deletion."""


@dataclass(frozen=True, slots=True)
class PartitionsRequested:
    """Partitions were asked for below `/admin/partitions_add`."""


@dataclass(frozen=True, slots=True)
class PartitionRemovalsRequested:
    """Partitions are to be removed, below `/admin/partitions_remove`, or a removal goes on."""


@dataclass(frozen=True, slots=True)
class ReassignmentsRequested:
    """`/admin/reassign_partitions` was created or written, or something below `/admin/partitions_reassigned`."""


@dataclass(frozen=True, slots=True)
class ReassignmentsCompletable:
    """The last brokers answered whether they deleted replicas of partitions that move away from them."""


@dataclass(frozen=True, slots=True)
class ReassignmentsEnded:
    """Reassignments were completed or cancelled, or their topics are gone; also those that were only about to begin."""


@dataclass(frozen=True, slots=True)
class PreferredElectionRequested:
    """`/admin/preferred_replica_election` was created or written."""


@dataclass(frozen=True, slots=True)
class IsrChangesNotified:
    """A broker older than AlterPartition wrote ISRs by itself."""


@dataclass(frozen=True, slots=True)
class LogDirsFailed:
    """Brokers lost log directories."""


@dataclass(frozen=True, slots=True)
class ConfigsChanged:
    """Somebody changed configurations."""


@dataclass(frozen=True, slots=True)
class BalanceDue:
    """It is time to look whether leaders should go back to their preferred replicas."""


@dataclass(frozen=True, slots=True)
class JournalDue:
    """It is time to look whether the journal should say that the controller is alive, or have a snapshot."""


@dataclass(frozen=True, slots=True)
class LedgerDue:
    """It is time to look whether the list of removed replicas has what nobody waits for any longer.

    Metrics and journals have this name, so it stays."""


@dataclass(frozen=True, slots=True)
class TokensDue:
    """It is time to look whether delegation tokens are over."""


@dataclass(frozen=True, slots=True)
class FeaturesChanged:
    """`/feature` was written, by us or somebody else, or deleted."""


@dataclass(frozen=True, slots=True)
class BrokerAnswered:
    """A broker answered a control request."""

    broker: BrokerId
    broker_epoch: BrokerEpoch
    request: ControlRequest
    response: ControlResponse
    is_last: bool = True
    """Whether nothing else waited for the broker when it answered."""


@dataclass(frozen=True, slots=True)
class ResendDue:
    """It is time to send a broker everything again, because it refused something."""

    broker: BrokerId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class BrokerBehind:
    """A broker can be reached again that missed requests: too many had waited for it."""

    broker: BrokerId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class StreamBroken:
    """The stream of requests to a broker ended with an error that nobody expected, in the term of this epoch."""

    broker: BrokerId
    controller_epoch: ControllerEpoch
    error: Exception


@dataclass(frozen=True, slots=True, eq=False)
class StaticConfigAnswered:
    """A broker said what its own file configures, as far as the journal records it."""

    broker: BrokerId
    config: StaticConfig


@dataclass(frozen=True, slots=True, eq=False)
class LogEndsAnswered:
    """Brokers said how far logs reach, or their time is over: the unclean election that waited for it can be held."""

    ends: EndsOfLogs
    hold: Callable[[EndsOfLogs], Awaitable[None]] = field(repr=False)
    """Holds it."""


@dataclass(frozen=True, slots=True)
class EpochOutdated:
    """A broker must be sent something under a later controller epoch than this one."""

    epoch: ControllerEpoch


@dataclass(frozen=True, slots=True, eq=False)
class RequestReceived:
    """A broker or a client asks something that the controller answers. The request is of the newest version."""

    request: RequestPayload
    answer: "Future[ResponsePayload]" = field(repr=False)
    quota: MutationQuota = field(default=UNLIMITED, repr=False)
    """What it changes is charged to."""


@dataclass(frozen=True, slots=True)
class AnswerOverdue:
    """The time that a client gave for its answer is over."""


Periodic: TypeAlias = BalanceDue | JournalDue | ReassignmentsEnded | TokensDue
"""What is looked at again and again, and nothing else waits for: it may be left out once."""

Event: TypeAlias = (
    RoleEvent
    | BrokersChanged
    | BrokerModified
    | TopicsChanged
    | TopicModified
    | TopicDeletionsRequested
    | PartitionsRequested
    | PartitionRemovalsRequested
    | ReassignmentsRequested
    | ReassignmentsCompletable
    | ReassignmentsEnded
    | PreferredElectionRequested
    | IsrChangesNotified
    | LogDirsFailed
    | ConfigsChanged
    | BalanceDue
    | JournalDue
    | LedgerDue
    | TokensDue
    | FeaturesChanged
    | BrokerAnswered
    | ResendDue
    | BrokerBehind
    | StreamBroken
    | StaticConfigAnswered
    | LogEndsAnswered
    | EpochOutdated
    | RequestReceived
    | AnswerOverdue
)
