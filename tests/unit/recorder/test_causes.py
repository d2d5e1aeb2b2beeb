"""The causes that are guessed from effects alone. All of them are documented."""

from pathlib import Path

import pytest

from controller_core.journal import inference
from controller_core.journal.batches import StateCopy, TopicCopy
from controller_core.journal.inference import UNOBSERVED, Looks, explain
from controller_core.journal.observed import difference
from controller_core.model.ids import BrokerId, ControllerEpoch, PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import PartitionState, ReplicaAssignment
from tests.unit.recorder.test_observed import broker, state

KEY = TopicPartition(TopicName("orders"), PartitionId(0))
ASSIGNED = ReplicaAssignment(replicas=(BrokerId(1), BrokerId(2), BrokerId(3)))
SECTION = (
    (Path(__file__).resolve().parents[3] / "docs" / "journal.md")
    .read_text()
    .split("### Guessed causes\n")[1]
    .split("\n#")[0]
)


def cluster(
    leadership: PartitionState, *brokers: int, restarted: int | None = None, assigned: ReplicaAssignment = ASSIGNED
) -> StateCopy:
    return StateCopy(
        brokers={BrokerId(n): broker(BrokerId(n), 2 if n == restarted else 1) for n in brokers},
        topics={KEY.topic: TopicCopy(topic_id=None, czxid=1, partitions={KEY.partition: assigned})},
        states={KEY: leadership},
    )


def ids(*numbers: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, numbers))


def causes(
    before: StateCopy, after: StateCopy, restarted: tuple[BrokerId, ...] = (), *, controller: int = 1000
) -> list[str]:
    """The states are of the controller's term."""
    controllers = {ControllerEpoch(1): BrokerId(controller)}
    looks = Looks(before=before, after=after, restarted=restarted, controllers=controllers)
    return [cause for cause, _ in explain(difference(before, after), looks)]


LED_BY_1 = state(1, ids(1, 2, 3), 5, 10)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (cluster(state(1, ids(1, 2), 5, 11), 1, 2, 3), "alter_partition"),
        (cluster(state(2, ids(2, 3), 6, 11), 1, 2, 3), "controlled_shutdown"),
        (cluster(state(1, ids(1, 2), 6, 11), 1, 2, 3), "controlled_shutdown"),
        (cluster(state(2, ids(1, 2, 3), 6, 11), 1, 2, 3), "elect_leaders"),
        (cluster(state(1, ids(1, 2, 3), 6, 11), 1, 2, 3), "unknown"),
    ],
)
def test_what_becomes_of_a_leader_whose_broker_is_there(after: StateCopy, expected: str) -> None:
    assert causes(cluster(LED_BY_1, 1, 2, 3), after) == [expected]


def test_a_leader_whose_registration_ended_before_has_failed() -> None:
    assert causes(cluster(LED_BY_1, 2, 3), cluster(state(2, ids(2, 3), 6, 11), 2, 3)) == ["broker_failed"]
    assert causes(cluster(LED_BY_1, 2, 3), cluster(state(-1, ids(1), 6, 11), 2, 3)) == ["broker_failed"]


def test_a_controller_that_takes_its_own_broker_out_shuts_down_though_it_is_gone_at_the_next_look() -> None:
    before, after = cluster(LED_BY_1, 1, 2, 3), cluster(state(2, ids(2, 3), 6, 11), 2, 3)
    assert causes(before, after, controller=1) == ["broker_failed", "controlled_shutdown"]
    assert causes(before, after, controller=2) == ["broker_failed"]
    both_left = cluster(state(3, ids(3), 6, 11), 3)
    assert causes(before, both_left, controller=1) == ["broker_failed"]
    running = ReplicaAssignment(replicas=ids(2, 3, 1), removing=ids(1))
    before = cluster(LED_BY_1, 1, 2, 3, assigned=running)
    after = cluster(state(2, ids(2, 3), 6, 11), 2, 3, assigned=running)
    assert causes(before, after, controller=1) == ["broker_failed", "reassignments_requested"]


def test_a_leader_that_was_restarted_lately_has_lost_its_leadership_by_that() -> None:
    before, after = cluster(LED_BY_1, 1, 2, 3), cluster(state(2, ids(2, 3), 6, 11), 1, 2, 3)
    assert causes(before, after, ids(1)) == ["broker_restarted"]


def test_a_leader_that_comes_back_to_the_preferred_replica_is_balanced() -> None:
    before = cluster(state(2, ids(1, 2, 3), 5, 10), 1, 2, 3)
    assert causes(before, cluster(state(1, ids(1, 2, 3), 6, 11), 1, 2, 3)) == ["balance_due"]


def test_a_leader_that_moves_in_a_reassignment_is_a_step_of_it() -> None:
    running = ReplicaAssignment(replicas=ids(2, 3, 1), removing=ids(1))
    before = cluster(LED_BY_1, 1, 2, 3, assigned=running)
    assert causes(before, cluster(state(2, ids(1, 2, 3), 6, 11), 1, 2, 3, assigned=running)) == [
        "reassignments_requested"
    ]


def test_a_partition_without_a_leader_gets_one_from_its_isr_or_an_election() -> None:
    before = cluster(state(-1, ids(1), 5, 10), 2, 3)
    assert causes(before, cluster(state(1, ids(1), 6, 11), 1, 2, 3)) == ["broker_started"]
    before = cluster(state(-1, ids(1), 5, 10), 1, 2, 3)
    assert causes(before, cluster(state(1, ids(1), 6, 11), 1, 2, 3)) == ["broker_started"]


@pytest.mark.parametrize(
    "cause", [*inference._ORDER, UNOBSERVED, "controller_failover", "recorder_started", "journal_due"]
)
def test_every_cause_that_is_guessed_is_described(cause: str) -> None:
    assert f"`{cause}`" in SECTION
