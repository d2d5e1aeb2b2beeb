"""The events of a controller. An event says only that something happened, never what the state is now.

ZooKeeper's watches are one-shot and coalesce, so a handler reads the present state itself (KAFKA-5502, KAFKA-5879). So
two equal events in a row have the effect of one, and the queue keeps only the first.
"""

from asyncio import Future
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.journal.configs import StaticConfig
from controller_core.model.authorization.principal import Caller
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
    """It is time to check the role again, although nobody wrote `/controller`."""


RoleEvent: TypeAlias = ControllerChanged | SessionEnded | RoleDue
"""The events about the role. All other events need a term."""


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
    """A topic's znode was written, for example because partitions were added."""

    topic: TopicName
    others: tuple[TopicName, ...] = ()
    """Other topics that were written before the first one was read."""


@dataclass(frozen=True, slots=True)
class TopicDeletionsRequested:
    """Topics were marked for deletion."""


@dataclass(frozen=True, slots=True)
class PartitionsRequested:
    """Somebody requested partitions below `/admin/partitions_add`."""


@dataclass(frozen=True, slots=True)
class PartitionRemovalsRequested:
    """Somebody requested the removal of partitions below `/admin/partitions_remove`, or a removal can continue."""


@dataclass(frozen=True, slots=True)
class ReassignmentsRequested:
    """Somebody created or wrote `/admin/reassign_partitions`, or a znode below `/admin/partitions_reassigned`."""


@dataclass(frozen=True, slots=True)
class ReassignmentsCompletable:
    """The last brokers answered if they deleted the replicas of partitions that move away from them."""


@dataclass(frozen=True, slots=True)
class ReassignmentsEnded:
    """Reassignments were completed or cancelled, or their topics were deleted.

    This includes requests that never began.
    """


@dataclass(frozen=True, slots=True)
class PreferredElectionRequested:
    """`/admin/preferred_replica_election` was created or written."""


@dataclass(frozen=True, slots=True)
class IsrChangesNotified:
    """A broker older than AlterPartition wrote ISRs to ZooKeeper itself."""


@dataclass(frozen=True, slots=True)
class LogDirsFailed:
    """Brokers lost log directories."""


@dataclass(frozen=True, slots=True)
class ConfigsChanged:
    """Somebody changed configurations."""


@dataclass(frozen=True, slots=True)
class BalanceDue:
    """It is time to check if leaders should go back to their preferred replicas."""

    returned: tuple[BrokerId, BrokerEpoch] | None = None
    """The drained broker that has returned, for a check of it alone; None for the check of all, which recurs."""


@dataclass(frozen=True, slots=True)
class JournalDue:
    """It is time to check if the journal needs a sign of life or a snapshot."""


@dataclass(frozen=True, slots=True)
class LedgerDue:
    """It is time to check the list of removed replicas for entries that nobody waits for any longer.

    The name is also the event's name in metrics and journals, so it cannot change.
    """


@dataclass(frozen=True, slots=True)
class TokensDue:
    """It is time to check if delegation tokens have expired."""


@dataclass(frozen=True, slots=True)
class FeaturesChanged:
    """`/feature` was written, by this process or another one, or deleted."""


@dataclass(frozen=True, slots=True)
class BrokerAnswered:
    """A broker answered a control request."""

    broker: BrokerId
    broker_epoch: BrokerEpoch
    request: ControlRequest
    response: ControlResponse
    is_last: bool = True
    """True if no other request waited for the broker when it answered."""


@dataclass(frozen=True, slots=True)
class ResendDue:
    """It is time to send a broker everything again, because it refused a request."""

    broker: BrokerId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class BrokerBehind:
    """A broker is reachable again, but requests for it were dropped because too many waited."""

    broker: BrokerId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class StreamBroken:
    """The stream of requests to a broker ended with an unexpected error, in the term of this epoch."""

    broker: BrokerId
    controller_epoch: ControllerEpoch
    error: Exception


@dataclass(frozen=True, slots=True, eq=False)
class StaticConfigAnswered:
    """A broker answered with its static configuration, as far as the journal records it."""

    broker: BrokerId
    config: StaticConfig


@dataclass(frozen=True, slots=True, eq=False)
class LogEndsAnswered:
    """Brokers answered with the ends of their logs, or time ran out. The unclean election that waited can be held."""

    ends: EndsOfLogs
    hold: Callable[[EndsOfLogs], Awaitable[None]] = field(repr=False)
    """Holds the election."""


@dataclass(frozen=True, slots=True)
class EpochOutdated:
    """A broker must be sent something under a later controller epoch than this one."""

    epoch: ControllerEpoch


@dataclass(frozen=True, slots=True, eq=False)
class RequestReceived:
    """A broker or a client sent a request that the controller answers. It has the newest version."""

    request: RequestPayload
    answer: "Future[ResponsePayload]" = field(repr=False)
    quota: MutationQuota = field(default=UNLIMITED, repr=False)
    """The quota that its changes are charged to."""
    caller: Caller | None = field(default=None, repr=False)
    """The client that sent it; None for a broker."""


@dataclass(frozen=True, slots=True)
class AnswerOverdue:
    """The timeout of a client's request is over."""


Periodic: TypeAlias = BalanceDue | JournalDue | ReassignmentsEnded | TokensDue
"""Events that recur and that nothing else waits for. One of them may be left out."""

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
