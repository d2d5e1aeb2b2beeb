"""The table of all APIs of Kafka 3.9: what each is for, who may send it, and how the controller's port handles it.

Brokers list the controller as a broker, so it gets brokers' requests. It answers those for controllers, and those that
tools send to each broker, as a broker without logs, groups and transactions: a relayed answer would be counted twice.
It relays requests that any broker can answer, or that clients send to a leader or coordinator that they looked up. It
refuses requests from a controller to a broker or between brokers, because clients could command a broker through it,
and those of KRaft. A broker sees the controller's address instead of the client's, so changes of the cluster, its data
or its credentials are authorized before they are relayed. Some requests need more than their API does, because of what
they contain (`listener.disguises`).
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final, NamedTuple

from controller_core.model.access import Need


class Handling(Enum):
    """The way in which a request is handled."""

    OWN = auto()
    """The controller answers it."""
    RELAY = auto()
    """A broker answers it."""
    REFUSE = auto()
    """The connection is closed."""


_OWN, _RELAY, _REFUSE = Handling.OWN, Handling.RELAY, Handling.REFUSE


class Purpose(Enum):
    """The purpose of an API, which decides who may send it."""

    CONNECTS = auto()
    """Asks for versions, or logs in."""
    READS = auto()
    """Reads records, metadata or settings."""
    PRODUCES = auto()
    """Writes records or measurements, also in transactions."""
    CONSUMES = auto()
    """Changes the members or the offsets of a group, as consumers do."""
    ADMINISTERS = auto()
    """Changes the cluster, its settings or its data, as administrators' tools do."""
    ALTERS_CREDENTIALS = auto()
    REPORTS = auto()
    """Goes from a broker to its controller."""
    COMMANDS = auto()
    """Goes from the controller to a broker."""
    JOINS_SERVERS = auto()
    """Goes from one broker to another one, or between servers of KRaft."""


_CONNECTS, _READS, _PRODUCES, _CONSUMES = Purpose.CONNECTS, Purpose.READS, Purpose.PRODUCES, Purpose.CONSUMES
_ADMINISTERS, _CREDENTIALS = Purpose.ADMINISTERS, Purpose.ALTERS_CREDENTIALS
_REPORTS, _COMMANDS, _BETWEEN = Purpose.REPORTS, Purpose.COMMANDS, Purpose.JOINS_SERVERS

NEED_FOR: Final[Mapping[Purpose, Need]] = {
    Purpose.CONNECTS: Need.NOBODY,
    Purpose.READS: Need.NOBODY,
    Purpose.PRODUCES: Need.NOBODY,
    Purpose.CONSUMES: Need.NOBODY,
    Purpose.ADMINISTERS: Need.ADMINISTRATOR,
    Purpose.ALTERS_CREDENTIALS: Need.KEEPER_OF_CREDENTIALS,
    Purpose.REPORTS: Need.BROKER,
    Purpose.COMMANDS: Need.BROKER,
    Purpose.JOINS_SERVERS: Need.BROKER,
}
"""The right that a caller needs for each purpose."""


class Row(NamedTuple):
    """One API."""

    key: int
    name: str
    handling: Handling
    purpose: Purpose

    @property
    def need(self) -> Need:
        """The right that a caller needs."""
        return NEED_FOR[self.purpose]


API_TABLE: Final[tuple[Row, ...]] = (
    Row(0, "Produce", _RELAY, _PRODUCES),
    Row(1, "Fetch", _RELAY, _READS),
    Row(2, "ListOffsets", _RELAY, _READS),
    Row(3, "Metadata", _OWN, _READS),
    Row(4, "LeaderAndIsr", _REFUSE, _COMMANDS),
    Row(5, "StopReplica", _REFUSE, _COMMANDS),
    Row(6, "UpdateMetadata", _REFUSE, _COMMANDS),
    Row(7, "ControlledShutdown", _OWN, _REPORTS),
    Row(8, "OffsetCommit", _RELAY, _CONSUMES),
    Row(9, "OffsetFetch", _RELAY, _READS),
    Row(10, "FindCoordinator", _RELAY, _READS),
    Row(11, "JoinGroup", _RELAY, _CONSUMES),
    Row(12, "Heartbeat", _RELAY, _CONSUMES),
    Row(13, "LeaveGroup", _RELAY, _CONSUMES),
    Row(14, "SyncGroup", _RELAY, _CONSUMES),
    Row(15, "DescribeGroups", _RELAY, _READS),  # sent to a coordinator
    Row(16, "ListGroups", _OWN, _READS),  # sent to each broker, for the groups that it coordinates
    Row(17, "SaslHandshake", _RELAY, _CONNECTS),  # a broker answers that the listener has no SASL
    Row(18, "ApiVersions", _OWN, _CONNECTS),
    Row(19, "CreateTopics", _OWN, _ADMINISTERS),
    Row(20, "DeleteTopics", _OWN, _ADMINISTERS),
    Row(21, "DeleteRecords", _RELAY, _ADMINISTERS),
    Row(22, "InitProducerId", _RELAY, _PRODUCES),
    Row(23, "OffsetForLeaderEpoch", _RELAY, _READS),
    Row(24, "AddPartitionsToTxn", _RELAY, _PRODUCES),
    Row(25, "AddOffsetsToTxn", _RELAY, _PRODUCES),
    Row(26, "EndTxn", _RELAY, _PRODUCES),
    Row(
        27, "WriteTxnMarkers", _REFUSE, _BETWEEN
    ),  # from a coordinator, or from a tool that aborts transactions, to a leader
    Row(28, "TxnOffsetCommit", _RELAY, _PRODUCES),
    Row(29, "DescribeAcls", _RELAY, _READS),  # sent to any broker, like the next two
    Row(30, "CreateAcls", _RELAY, _ADMINISTERS),
    Row(31, "DeleteAcls", _RELAY, _ADMINISTERS),
    Row(32, "DescribeConfigs", _OWN, _READS),  # relayed, unless it concerns the controller
    Row(33, "AlterConfigs", _OWN, _ADMINISTERS),  # relayed, unless it concerns the controller
    Row(34, "AlterReplicaLogDirs", _OWN, _ADMINISTERS),  # sent to each broker, about its replicas
    Row(35, "DescribeLogDirs", _OWN, _READS),  # sent to each broker
    Row(36, "SaslAuthenticate", _RELAY, _CONNECTS),
    Row(37, "CreatePartitions", _OWN, _ADMINISTERS),
    Row(38, "CreateDelegationToken", _RELAY, _CREDENTIALS),  # sent to any broker, like all requests about tokens
    Row(39, "RenewDelegationToken", _RELAY, _CREDENTIALS),
    Row(40, "ExpireDelegationToken", _RELAY, _CREDENTIALS),
    Row(41, "DescribeDelegationToken", _RELAY, _READS),
    Row(42, "DeleteGroups", _RELAY, _ADMINISTERS),
    Row(43, "ElectLeaders", _OWN, _ADMINISTERS),
    Row(44, "IncrementalAlterConfigs", _OWN, _ADMINISTERS),  # relayed, unless it concerns the controller
    Row(45, "AlterPartitionReassignments", _OWN, _ADMINISTERS),
    Row(46, "ListPartitionReassignments", _OWN, _READS),
    Row(47, "OffsetDelete", _RELAY, _ADMINISTERS),
    Row(48, "DescribeClientQuotas", _RELAY, _READS),  # sent to any broker, like the next one
    Row(49, "AlterClientQuotas", _RELAY, _ADMINISTERS),
    Row(50, "DescribeUserScramCredentials", _RELAY, _READS),  # sent to any broker
    Row(51, "AlterUserScramCredentials", _OWN, _CREDENTIALS),
    Row(52, "Vote", _REFUSE, _BETWEEN),
    Row(53, "BeginQuorumEpoch", _REFUSE, _BETWEEN),
    Row(54, "EndQuorumEpoch", _REFUSE, _BETWEEN),
    Row(55, "DescribeQuorum", _REFUSE, _READS),
    Row(56, "AlterPartition", _OWN, _REPORTS),
    Row(57, "UpdateFeatures", _OWN, _ADMINISTERS),
    Row(58, "Envelope", _REFUSE, _BETWEEN),
    Row(59, "FetchSnapshot", _REFUSE, _BETWEEN),
    Row(60, "DescribeCluster", _OWN, _READS),
    Row(61, "DescribeProducers", _OWN, _READS),  # sent to a leader, or to the broker that a tool's user names
    Row(62, "BrokerRegistration", _REFUSE, _BETWEEN),
    Row(63, "BrokerHeartbeat", _REFUSE, _BETWEEN),
    Row(64, "UnregisterBroker", _REFUSE, _ADMINISTERS),
    Row(65, "DescribeTransactions", _RELAY, _READS),  # sent to a coordinator
    Row(66, "ListTransactions", _OWN, _READS),  # sent to each broker, for the transactions that it coordinates
    Row(67, "AllocateProducerIds", _OWN, _REPORTS),
    Row(68, "ConsumerGroupHeartbeat", _RELAY, _CONSUMES),
    Row(69, "ConsumerGroupDescribe", _RELAY, _READS),
    Row(70, "ControllerRegistration", _REFUSE, _BETWEEN),
    Row(71, "GetTelemetrySubscriptions", _REFUSE, _READS),
    Row(72, "PushTelemetry", _REFUSE, _PRODUCES),
    Row(73, "AssignReplicasToDirs", _REFUSE, _BETWEEN),
    Row(74, "ListClientMetricsResources", _REFUSE, _READS),
    Row(75, "DescribeTopicPartitions", _REFUSE, _READS),
    Row(76, "ShareGroupHeartbeat", _REFUSE, _CONSUMES),
    Row(77, "ShareGroupDescribe", _REFUSE, _READS),
    Row(78, "ShareFetch", _REFUSE, _CONSUMES),
    Row(79, "ShareAcknowledge", _REFUSE, _CONSUMES),
    Row(80, "AddRaftVoter", _REFUSE, _ADMINISTERS),
    Row(81, "RemoveRaftVoter", _REFUSE, _ADMINISTERS),
    Row(82, "UpdateRaftVoter", _REFUSE, _BETWEEN),
    Row(83, "InitializeShareGroupState", _REFUSE, _BETWEEN),
    Row(84, "ReadShareGroupState", _REFUSE, _BETWEEN),
    Row(85, "WriteShareGroupState", _REFUSE, _BETWEEN),
    Row(86, "DeleteShareGroupState", _REFUSE, _BETWEEN),
    Row(87, "ReadShareGroupStateSummary", _REFUSE, _BETWEEN),
)

HANDLING: Final[Mapping[int, Handling]] = {row.key: row.handling for row in API_TABLE}
_NEEDS: Final[Mapping[int, Need]] = {row.key: row.need for row in API_TABLE}

REFUSED_API_KEYS: Final = frozenset(key for key, handling in HANDLING.items() if handling is Handling.REFUSE)
"""Not offered in ApiVersions either."""


def need_of(api_key: int) -> Need:
    """Return the right that a caller needs for an API. An unknown one needs the right that fewest callers have."""
    return _NEEDS.get(api_key, Need.BROKER)
