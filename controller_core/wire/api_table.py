"""The table of all APIs of Kafka 3.9: how the controller's port handles each, and who may send it.

Brokers list the controller as a broker, so it gets brokers' requests. It answers those for controllers, and those that
tools send to each broker, as a broker without logs, groups and transactions: a relayed answer would be counted twice.
It relays requests that any broker can answer, or that clients send to a leader or coordinator that they looked up. It
refuses requests from a controller to a broker or between brokers, because clients could command a broker through it,
and those of KRaft. A broker sees the controller's address instead of the client's, so changes of the cluster, its data
or its credentials are authorized before they are relayed.
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

_BROKER, _ADMINISTRATOR, _KEEPER = Need.BROKER, Need.ADMINISTRATOR, Need.KEEPER_OF_CREDENTIALS


class Row(NamedTuple):
    """One API."""

    key: int
    name: str
    handling: Handling
    need: Need = Need.NOBODY


API_TABLE: Final[tuple[Row, ...]] = (
    Row(0, "Produce", _RELAY),
    Row(1, "Fetch", _RELAY),
    Row(2, "ListOffsets", _RELAY),
    Row(3, "Metadata", _OWN),
    Row(4, "LeaderAndIsr", _REFUSE),
    Row(5, "StopReplica", _REFUSE),
    Row(6, "UpdateMetadata", _REFUSE),
    Row(7, "ControlledShutdown", _OWN, _BROKER),
    Row(8, "OffsetCommit", _RELAY),
    Row(9, "OffsetFetch", _RELAY),
    Row(10, "FindCoordinator", _RELAY),
    Row(11, "JoinGroup", _RELAY),
    Row(12, "Heartbeat", _RELAY),
    Row(13, "LeaveGroup", _RELAY),
    Row(14, "SyncGroup", _RELAY),
    Row(15, "DescribeGroups", _RELAY),  # sent to a coordinator
    Row(16, "ListGroups", _OWN),  # sent to each broker, for the groups that it coordinates
    Row(17, "SaslHandshake", _RELAY),  # a broker answers that the listener has no SASL
    Row(18, "ApiVersions", _OWN),
    Row(19, "CreateTopics", _OWN, _ADMINISTRATOR),
    Row(20, "DeleteTopics", _OWN, _ADMINISTRATOR),
    Row(21, "DeleteRecords", _RELAY, _ADMINISTRATOR),
    Row(22, "InitProducerId", _RELAY),
    Row(23, "OffsetForLeaderEpoch", _RELAY),
    Row(24, "AddPartitionsToTxn", _RELAY),
    Row(25, "AddOffsetsToTxn", _RELAY),
    Row(26, "EndTxn", _RELAY),
    Row(27, "WriteTxnMarkers", _REFUSE),  # from a coordinator, or from a tool that aborts transactions, to a leader
    Row(28, "TxnOffsetCommit", _RELAY),
    Row(29, "DescribeAcls", _RELAY),  # sent to any broker, like the next two
    Row(30, "CreateAcls", _RELAY, _ADMINISTRATOR),
    Row(31, "DeleteAcls", _RELAY, _ADMINISTRATOR),
    Row(32, "DescribeConfigs", _OWN),  # relayed, unless it concerns the controller
    Row(33, "AlterConfigs", _OWN, _ADMINISTRATOR),  # relayed, unless it concerns the controller
    Row(34, "AlterReplicaLogDirs", _OWN, _ADMINISTRATOR),  # sent to each broker, about its replicas
    Row(35, "DescribeLogDirs", _OWN),  # sent to each broker
    Row(36, "SaslAuthenticate", _RELAY),
    Row(37, "CreatePartitions", _OWN, _ADMINISTRATOR),
    Row(38, "CreateDelegationToken", _RELAY, _KEEPER),  # sent to any broker, like all requests about tokens
    Row(39, "RenewDelegationToken", _RELAY, _KEEPER),
    Row(40, "ExpireDelegationToken", _RELAY, _KEEPER),
    Row(41, "DescribeDelegationToken", _RELAY),
    Row(42, "DeleteGroups", _RELAY, _ADMINISTRATOR),
    Row(43, "ElectLeaders", _OWN, _ADMINISTRATOR),
    Row(44, "IncrementalAlterConfigs", _OWN, _ADMINISTRATOR),  # relayed, unless it concerns the controller
    Row(45, "AlterPartitionReassignments", _OWN, _ADMINISTRATOR),
    Row(46, "ListPartitionReassignments", _OWN),
    Row(47, "OffsetDelete", _RELAY, _ADMINISTRATOR),
    Row(48, "DescribeClientQuotas", _RELAY),  # sent to any broker, like the next one
    Row(49, "AlterClientQuotas", _RELAY, _ADMINISTRATOR),
    Row(50, "DescribeUserScramCredentials", _RELAY),  # sent to any broker
    Row(51, "AlterUserScramCredentials", _OWN, _KEEPER),
    Row(52, "Vote", _REFUSE),
    Row(53, "BeginQuorumEpoch", _REFUSE),
    Row(54, "EndQuorumEpoch", _REFUSE),
    Row(55, "DescribeQuorum", _REFUSE),
    Row(56, "AlterPartition", _OWN, _BROKER),
    Row(57, "UpdateFeatures", _OWN, _ADMINISTRATOR),
    Row(58, "Envelope", _REFUSE),
    Row(59, "FetchSnapshot", _REFUSE),
    Row(60, "DescribeCluster", _OWN),
    Row(61, "DescribeProducers", _OWN),  # sent to a leader, or to the broker that a tool's user names
    Row(62, "BrokerRegistration", _REFUSE),
    Row(63, "BrokerHeartbeat", _REFUSE),
    Row(64, "UnregisterBroker", _REFUSE),
    Row(65, "DescribeTransactions", _RELAY),  # sent to a coordinator
    Row(66, "ListTransactions", _OWN),  # sent to each broker, for the transactions that it coordinates
    Row(67, "AllocateProducerIds", _OWN, _BROKER),
    Row(68, "ConsumerGroupHeartbeat", _RELAY),
    Row(69, "ConsumerGroupDescribe", _RELAY),
    Row(70, "ControllerRegistration", _REFUSE),
    Row(71, "GetTelemetrySubscriptions", _REFUSE),
    Row(72, "PushTelemetry", _REFUSE),
    Row(73, "AssignReplicasToDirs", _REFUSE),
    Row(74, "ListClientMetricsResources", _REFUSE),
    Row(75, "DescribeTopicPartitions", _REFUSE),
    Row(76, "ShareGroupHeartbeat", _REFUSE),
    Row(77, "ShareGroupDescribe", _REFUSE),
    Row(78, "ShareFetch", _REFUSE),
    Row(79, "ShareAcknowledge", _REFUSE),
    Row(80, "AddRaftVoter", _REFUSE),
    Row(81, "RemoveRaftVoter", _REFUSE),
    Row(82, "UpdateRaftVoter", _REFUSE),
    Row(83, "InitializeShareGroupState", _REFUSE),
    Row(84, "ReadShareGroupState", _REFUSE),
    Row(85, "WriteShareGroupState", _REFUSE),
    Row(86, "DeleteShareGroupState", _REFUSE),
    Row(87, "ReadShareGroupStateSummary", _REFUSE),
)

HANDLING: Final[Mapping[int, Handling]] = {row.key: row.handling for row in API_TABLE}
_NEEDS: Final[Mapping[int, Need]] = {row.key: row.need for row in API_TABLE}

REFUSED_API_KEYS: Final = frozenset(key for key, handling in HANDLING.items() if handling is Handling.REFUSE)
"""Not offered in ApiVersions either."""


def need_of(api_key: int) -> Need:
    """Return the right that a caller needs for an API."""
    return _NEEDS.get(api_key, Need.NOBODY)
