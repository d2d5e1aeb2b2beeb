"""Every API of Kafka 3.9, what becomes of its requests on the controller's port, and who may send them.

The controller is listed as one broker among others, so it is asked what brokers are asked. What only a controller
answers, it answers; and what tools ask each broker for itself, as a broker that has no logs, groups and transactions:
passed on to a real one, that one's answer would be there twice, once under the controller's id. What any broker answers
alike, or a leader or coordinator whom clients find first, is passed on. The rest is refused: what only a controller, or
a broker as such, sends to a broker, would let whoever reaches the controller's port command one; and what belongs to
KRaft is taken by no broker of a ZooKeeper cluster.

A broker that is passed a request sees the controller's address and not the client's. So what changes the cluster, its
data or its credentials is judged here before it is passed on, by the same rules as what is answered here.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final, NamedTuple

from controller_core.model.access import Need


class Handling(Enum):
    """What becomes of a request."""

    OWN = auto()
    """It is answered here."""
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
    Row(15, "DescribeGroups", _RELAY),  # of a coordinator
    Row(16, "ListGroups", _OWN),  # of each broker: those that it coordinates
    Row(17, "SaslHandshake", _RELAY),  # a broker says that the listener has no SASL
    Row(18, "ApiVersions", _OWN),
    Row(19, "CreateTopics", _OWN, _ADMINISTRATOR),
    Row(20, "DeleteTopics", _OWN, _ADMINISTRATOR),
    Row(21, "DeleteRecords", _RELAY, _ADMINISTRATOR),
    Row(22, "InitProducerId", _RELAY),
    Row(23, "OffsetForLeaderEpoch", _RELAY),
    Row(24, "AddPartitionsToTxn", _RELAY),
    Row(25, "AddOffsetsToTxn", _RELAY),
    Row(26, "EndTxn", _RELAY),
    Row(27, "WriteTxnMarkers", _REFUSE),  # of a coordinator, or of who aborts, to a leader
    Row(28, "TxnOffsetCommit", _RELAY),
    Row(29, "DescribeAcls", _RELAY),  # of any broker, as the two that follow
    Row(30, "CreateAcls", _RELAY, _ADMINISTRATOR),
    Row(31, "DeleteAcls", _RELAY, _ADMINISTRATOR),
    Row(32, "DescribeConfigs", _OWN),  # passed on, but for what is asked of the controller
    Row(33, "AlterConfigs", _RELAY, _ADMINISTRATOR),  # a broker refuses the configuration of another
    Row(34, "AlterReplicaLogDirs", _OWN, _ADMINISTRATOR),  # of each broker, about its replicas
    Row(35, "DescribeLogDirs", _OWN),  # of each broker
    Row(36, "SaslAuthenticate", _RELAY),
    Row(37, "CreatePartitions", _OWN, _ADMINISTRATOR),
    Row(38, "CreateDelegationToken", _RELAY, _KEEPER),  # of any broker, as all about tokens
    Row(39, "RenewDelegationToken", _RELAY, _KEEPER),
    Row(40, "ExpireDelegationToken", _RELAY, _KEEPER),
    Row(41, "DescribeDelegationToken", _RELAY),
    Row(42, "DeleteGroups", _RELAY, _ADMINISTRATOR),
    Row(43, "ElectLeaders", _OWN, _ADMINISTRATOR),
    Row(44, "IncrementalAlterConfigs", _OWN, _ADMINISTRATOR),  # passed on, but for what is asked of the controller
    Row(45, "AlterPartitionReassignments", _OWN, _ADMINISTRATOR),
    Row(46, "ListPartitionReassignments", _OWN),
    Row(47, "OffsetDelete", _RELAY, _ADMINISTRATOR),
    Row(48, "DescribeClientQuotas", _RELAY),  # of any broker, as the next
    Row(49, "AlterClientQuotas", _RELAY, _ADMINISTRATOR),
    Row(50, "DescribeUserScramCredentials", _RELAY),  # of any broker
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
    Row(61, "DescribeProducers", _OWN),  # of a leader, or of the broker that a tool's user names
    Row(62, "BrokerRegistration", _REFUSE),
    Row(63, "BrokerHeartbeat", _REFUSE),
    Row(64, "UnregisterBroker", _REFUSE),
    Row(65, "DescribeTransactions", _RELAY),  # of a coordinator
    Row(66, "ListTransactions", _OWN),  # of each broker: those that it coordinates
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
"""They are not offered in ApiVersions either."""


def need_of(api_key: int) -> Need:
    """Return who must be asking for an API."""
    return _NEEDS.get(api_key, Need.NOBODY)
