"""IsrChangeNotification and AlterPartition as leaders use them: ISRs grow and shrink, and everybody learns of it."""

import json

from controller_core.wire.messages import ErrorCode
from tests.real.conformance.clusters import ConformanceCluster
from tests.real.conformance.set_ups import ours_only

NOTIFICATIONS = "/isr_change_notification"


def test_a_replica_that_catches_up_is_taken_in_by_its_leader(cluster: ConformanceCluster) -> None:
    """It left with one epoch of the leader, and joins under the next one, which makes the leader check again."""
    cluster.serve_topic("catching-up", [[1, 2, 3]])
    cluster.leave_in_isr("catching-up", [1, 2])
    assert cluster.reassign(("catching-up", 0, [1, 3, 2])) == [ErrorCode.none]
    cluster.wait_until_moved("catching-up", [1, 3, 2])
    cluster.wait_until_served("catching-up")
    cluster.wait_until_everybody_knows("catching-up")


def test_an_isr_that_a_broker_wrote_by_itself_is_taken_over_and_sent(cluster: ConformanceCluster) -> None:
    """Brokers before 2.7 wrote the ISR themselves and left a notification, which is removed."""
    cluster.serve_topic("self-written", [[1, 2, 3]])
    path = "/brokers/topics/self-written/partitions/0/state"
    content = cluster.znodes.read(path)
    cluster.znodes.client.set(path, json.dumps({**content, "isr": [1, 3]}).encode())
    notification = {"version": 1, "partitions": [{"topic": "self-written", "partition": 0}]}
    created = cluster.znodes.client.create(
        f"{NOTIFICATIONS}/isr_change_", json.dumps(notification).encode(), sequence=True
    )
    cluster.wait_until_everybody_knows("self-written")
    cluster.wait_until_gone(created)
    assert cluster.alter_isr("self-written", [1]).error_code is ErrorCode.none, "the controller knows the new version"


def test_a_notification_of_what_is_not_there_is_removed_and_holds_up_no_other(cluster: ConformanceCluster) -> None:
    notification = {"version": 1, "partitions": [{"topic": "ghost", "partition": 0}]}
    created = cluster.znodes.client.create(
        f"{NOTIFICATIONS}/isr_change_", json.dumps(notification).encode(), sequence=True
    )
    cluster.wait_until_gone(created)
    cluster.serve_topic("beside-a-ghost", [[1, 2]])


@ours_only
def test_nobody_joins_an_isr_who_is_not_assigned(cluster: ConformanceCluster) -> None:
    """Kafka's controller writes it, and may make a leader of a broker without a replica."""
    first, second, third = cluster.order
    cluster.serve_topic("narrow", [[first, second]])
    assert cluster.alter_isr("narrow", [first, second, third]).error_code is ErrorCode.ineligible_replica
    assert cluster.alter_isr("narrow", [second]).error_code is ErrorCode.invalid_request
    assert cluster.znodes.state("narrow", 0)["isr"] == [first, second]
