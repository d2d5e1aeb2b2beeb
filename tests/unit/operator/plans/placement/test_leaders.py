"""After a move with another first replica, that one is elected. Otherwise the object says which broker leads."""

from dataclasses import replace
from typing import Any

import pytest

from controller_core.model.ids import PartitionId, TopicPartition
from controller_core.model.metadata import PreferredElectionPlan
from controller_core.model.snapshot import Snapshot
from controller_operator.kafka.actions import SubmitPreferredElection, SubmitReassignment
from controller_operator.kafka.requests.elections import ElectionReply
from controller_operator.plans.outcome import Context, Plan
from controller_operator.plans.reassignment.planner import decide
from controller_operator.resources.reassignment import ReassignmentPhase
from tests.unit.operator.clusters import (
    NOW,
    ORDERS,
    assign,
    healthy,
    lead,
    ready,
    reassignment,
    status_of,
    topic,
    view,
)

FRESH = replace(Context(now=NOW), is_view_fresh=True)
TARGETS = {0: [2, 1], 1: [3, 2]}
BEGUN = decide(reassignment(TARGETS), view(healthy([1, 2], [1, 2])), FRESH)
SAID = "all 2 partitions have the replicas of the spec"


def there(leader: int = 1, isr: tuple[int, ...] = (1, 2), **about: Any) -> Snapshot:
    """Partition 0 has got its new order, and partition 1 another replica; broker 2 leads it as before."""
    return view(topic((assign([2, 1]), lead(leader, isr)), (assign([3, 2]), lead(3, [3, 2]))), **about)


def look(seen: Snapshot, context: Context = FRESH) -> Plan[Any]:
    return decide(reassignment(TARGETS, status=status_of(BEGUN)), seen, context)


def test_the_first_replica_of_a_new_order_is_elected_and_then_the_move_ends() -> None:
    asking = look(there())
    (step,) = asking.steps
    assert isinstance(step, SubmitPreferredElection)
    assert [str(tp) for tp in step.partitions] == ["orders-0"]
    assert asking.status.phase is ReassignmentPhase.RUNNING
    assert ready(asking).message == "asking for the election of 1 leader, because other replicas come first now"
    ended = look(there(leader=2), replace(FRESH, done=(step,)))
    assert ended.status.phase is ReassignmentPhase.COMPLETED
    assert ready(ended).message == f"{SAID}; the first replica is elected as leader of orders-0"


def test_nobody_is_asked_if_the_first_replica_leads_already() -> None:
    plan = look(there(leader=2))
    assert (plan.steps, ready(plan).message) == (
        (),
        f"{SAID}; the first replica is elected as leader of orders-0",
    )


def test_nobody_is_asked_if_the_first_replica_is_not_in_sync() -> None:
    plan = look(there(isr=(1,)))
    assert (plan.steps, ready(plan).message) == ((), SAID)


ASKED = SubmitPreferredElection(partitions=(TopicPartition(ORDERS, PartitionId(0)),))


@pytest.mark.parametrize(
    ("seen", "elections", "why"),
    [
        (there(preferred_election=PreferredElectionPlan(partitions=())), (), "another election runs"),
        (there(controller=None), (), "the cluster has no controller"),
        (there(), (ElectionReply(step=ASKED, trouble="lost"),), "the controller gave no answer: lost"),
    ],
    ids=["another election runs", "no controller", "no answer"],
)
def test_the_election_is_asked_for_later_if_it_cannot_be_now(
    seen: Snapshot, elections: tuple[ElectionReply, ...], why: str
) -> None:
    plan = look(seen, replace(FRESH, elections=elections))
    assert (plan.steps, plan.status.phase) == ((), ReassignmentPhase.RUNNING)
    assert f"because other replicas come first now: {why}" in ready(plan).message
    assert plan.look_again_in_s


def test_an_election_that_the_controller_refuses_ends_the_move_which_says_how_to_get_it() -> None:
    refused = ElectionReply(step=ASKED, refused=((TopicPartition(ORDERS, PartitionId(0)), "no right"),))
    plan = look(there(), replace(FRESH, done=(ASKED,), elections=(refused,)))
    assert (plan.steps, plan.status.phase) == ((), ReassignmentPhase.COMPLETED)
    assert ready(plan).message == (
        f"{SAID}; another replica than the first one leads orders-0, as before the move: a PreferredElection changes that"
    )


def test_a_new_first_replica_is_elected_if_the_leader_stays_among_the_replicas() -> None:
    """Partition 1 moves from brokers 1 and 2 to 3 and 2."""
    begun = status_of(decide(reassignment(TARGETS), view(healthy([1, 2], [2, 1])), FRESH))
    moved = (assign([2, 1]), lead(2, [1, 2])), (assign([3, 2]), lead(2, [3, 2]))
    asking = decide(reassignment(TARGETS, status=begun), view(topic(*moved)), FRESH)
    (step,) = asking.steps
    assert isinstance(step, SubmitPreferredElection)
    assert [str(tp) for tp in step.partitions] == ["orders-1"]
    led = (moved[0], (assign([3, 2]), lead(3, [3, 2])))
    ended = decide(reassignment(TARGETS, status=begun), view(topic(*led)), replace(FRESH, done=(step,)))
    assert ended.status.phase is ReassignmentPhase.COMPLETED
    assert ready(ended).message == f"{SAID}; the first replica is elected as leader of orders-0"


def test_a_move_that_keeps_the_first_replica_elects_nobody_and_says_so() -> None:
    targets = {0: [1, 3], 1: [3, 2]}
    begun = status_of(decide(reassignment(targets), view(healthy([1, 2], [1, 2])), FRESH))
    seen = view(topic((assign([1, 3]), lead(3, [1, 3])), (assign([3, 2]), lead(3, [3, 2]))))
    plan = decide(reassignment(targets, status=begun), seen, FRESH)
    assert (plan.steps, plan.status.phase) == ((), ReassignmentPhase.COMPLETED)
    assert "another replica than the first one leads orders-0" in ready(plan).message


def test_the_order_is_changed_first() -> None:
    assert [type(step) for step in BEGUN.steps] == [SubmitReassignment]
