"""Every API of Kafka 3.9, and what becomes of its requests on the controller's port.

The controller is listed as one broker among others, so it is asked what brokers are asked. What only a controller
answers, it answers; and what tools ask each broker for itself, as a broker that has no logs, groups and transactions:
passed on to a real one, that one's answer would be there twice, once under the controller's id. What any broker answers
alike, or a leader or coordinator whom clients find first, is passed on. The rest is refused: what only a controller, or
a broker as such, sends to a broker, would let whoever reaches the controller's port command one; and what belongs to
KRaft is taken by no broker of a ZooKeeper cluster.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final


class Handling(Enum):
    """What becomes of a request."""

    OWN = auto()
    """It is answered here."""
    RELAY = auto()
    """A broker answers it."""
    REFUSE = auto()
    """The connection is closed."""


_OWN, _RELAY, _REFUSE = Handling.OWN, Handling.RELAY, Handling.REFUSE

API_TABLE: Final[tuple[tuple[int, str, Handling], ...]] = (
    (0, "Produce", _RELAY),
    (1, "Fetch", _RELAY),
    (2, "ListOffsets", _RELAY),
    (3, "Metadata", _OWN),
    (4, "LeaderAndIsr", _REFUSE),
    (5, "StopReplica", _REFUSE),
    (6, "UpdateMetadata", _REFUSE),
    (7, "ControlledShutdown", _OWN),
    (8, "OffsetCommit", _RELAY),
    (9, "OffsetFetch", _RELAY),
    (10, "FindCoordinator", _RELAY),
    (11, "JoinGroup", _RELAY),
    (12, "Heartbeat", _RELAY),
    (13, "LeaveGroup", _RELAY),
    (14, "SyncGroup", _RELAY),
    (15, "DescribeGroups", _RELAY),  # of a coordinator
    (16, "ListGroups", _OWN),  # of each broker: those that it coordinates
    (17, "SaslHandshake", _RELAY),  # a broker says that the listener has no SASL
    (18, "ApiVersions", _OWN),
    (19, "CreateTopics", _OWN),
    (20, "DeleteTopics", _OWN),
    (21, "DeleteRecords", _RELAY),
    (22, "InitProducerId", _RELAY),
    (23, "OffsetForLeaderEpoch", _RELAY),
    (24, "AddPartitionsToTxn", _RELAY),
    (25, "AddOffsetsToTxn", _RELAY),
    (26, "EndTxn", _RELAY),
    (27, "WriteTxnMarkers", _REFUSE),  # of a coordinator, or of who aborts, to a leader
    (28, "TxnOffsetCommit", _RELAY),
    (29, "DescribeAcls", _RELAY),  # of any broker, as the two that follow
    (30, "CreateAcls", _RELAY),
    (31, "DeleteAcls", _RELAY),
    (32, "DescribeConfigs", _OWN),  # passed on, but for what is asked of the controller
    (33, "AlterConfigs", _RELAY),  # a broker refuses the configuration of another
    (34, "AlterReplicaLogDirs", _OWN),  # of each broker, about its replicas
    (35, "DescribeLogDirs", _OWN),  # of each broker
    (36, "SaslAuthenticate", _RELAY),
    (37, "CreatePartitions", _OWN),
    (38, "CreateDelegationToken", _RELAY),  # of any broker, as all about tokens
    (39, "RenewDelegationToken", _RELAY),
    (40, "ExpireDelegationToken", _RELAY),
    (41, "DescribeDelegationToken", _RELAY),
    (42, "DeleteGroups", _RELAY),
    (43, "ElectLeaders", _OWN),
    (44, "IncrementalAlterConfigs", _OWN),  # passed on, but for what is asked of the controller
    (45, "AlterPartitionReassignments", _OWN),
    (46, "ListPartitionReassignments", _OWN),
    (47, "OffsetDelete", _RELAY),
    (48, "DescribeClientQuotas", _RELAY),  # of any broker, as the next
    (49, "AlterClientQuotas", _RELAY),
    (50, "DescribeUserScramCredentials", _RELAY),  # of any broker
    (51, "AlterUserScramCredentials", _OWN),
    (52, "Vote", _REFUSE),
    (53, "BeginQuorumEpoch", _REFUSE),
    (54, "EndQuorumEpoch", _REFUSE),
    (55, "DescribeQuorum", _REFUSE),
    (56, "AlterPartition", _OWN),
    (57, "UpdateFeatures", _OWN),
    (58, "Envelope", _REFUSE),
    (59, "FetchSnapshot", _REFUSE),
    (60, "DescribeCluster", _OWN),
    (61, "DescribeProducers", _OWN),  # of a leader, or of the broker that a tool's user names
    (62, "BrokerRegistration", _REFUSE),
    (63, "BrokerHeartbeat", _REFUSE),
    (64, "UnregisterBroker", _REFUSE),
    (65, "DescribeTransactions", _RELAY),  # of a coordinator
    (66, "ListTransactions", _OWN),  # of each broker: those that it coordinates
    (67, "AllocateProducerIds", _OWN),
    (68, "ConsumerGroupHeartbeat", _RELAY),
    (69, "ConsumerGroupDescribe", _RELAY),
    (70, "ControllerRegistration", _REFUSE),
    (71, "GetTelemetrySubscriptions", _REFUSE),
    (72, "PushTelemetry", _REFUSE),
    (73, "AssignReplicasToDirs", _REFUSE),
    (74, "ListClientMetricsResources", _REFUSE),
    (75, "DescribeTopicPartitions", _REFUSE),
    (76, "ShareGroupHeartbeat", _REFUSE),
    (77, "ShareGroupDescribe", _REFUSE),
    (78, "ShareFetch", _REFUSE),
    (79, "ShareAcknowledge", _REFUSE),
    (80, "AddRaftVoter", _REFUSE),
    (81, "RemoveRaftVoter", _REFUSE),
    (82, "UpdateRaftVoter", _REFUSE),
    (83, "InitializeShareGroupState", _REFUSE),
    (84, "ReadShareGroupState", _REFUSE),
    (85, "WriteShareGroupState", _REFUSE),
    (86, "DeleteShareGroupState", _REFUSE),
    (87, "ReadShareGroupStateSummary", _REFUSE),
)

HANDLING: Final[Mapping[int, Handling]] = {key: handling for key, _, handling in API_TABLE}

REFUSED_API_KEYS: Final = frozenset(key for key, handling in HANDLING.items() if handling is Handling.REFUSE)
"""They are not offered in ApiVersions either."""
