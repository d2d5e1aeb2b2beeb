"""The lines in brokers' logs about deletions that Kafka's own controller did not cause."""

from devcluster.soak.kafka_faults import find_undeleted_replicas

FAILED = (
    "[t] ERROR [ReplicaStateMachine controllerId=2] Error while moving some replicas to {} state (kafka.controller)"
)
ASSIGNED = (
    "[t] INFO [Controller id=2] Successfully updated assignment of partition {} to ReplicaAssignment(replicas=6,5)"
)


def test_a_reassignment_that_ends_after_its_deletion_failed_leaves_a_log() -> None:
    log = [FAILED.format("ReplicaDeletionStarted"), FAILED.format("NonExistentReplica"), ASSIGNED.format("orders-0")]
    assert list(find_undeleted_replicas(log)) == ["orders-0"]


def test_other_failures_leave_none_and_one_failure_is_not_held_against_the_next_reassignment() -> None:
    log = [
        FAILED.format("OnlineReplica"),
        ASSIGNED.format("orders-0"),
        FAILED.format("ReplicaDeletionStarted"),
        ASSIGNED.format("orders-1"),
        ASSIGNED.format("orders-2"),
    ]
    assert list(find_undeleted_replicas(log)) == ["orders-1"]
