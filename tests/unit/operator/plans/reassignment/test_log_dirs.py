"""A move that names log directories asks brokers for them before its partitions move, and ends when replicas are there."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from controller_core.client.log_dirs.log_sizes import FutureLog, LogSizes
from controller_core.client.log_dirs.placing import Places
from controller_core.model.ids import BrokerId, PartitionId, PartitionReplica, TopicPartition
from controller_operator.kafka.actions import SubmitReassignment
from controller_operator.kafka.requests.placements import PlacementReply, PlaceReplicas, ReturnReplicas
from controller_operator.kafka.stalls import Stalls
from controller_operator.plans.outcome import Context, Plan
from controller_operator.plans.reassignment.planner import decide
from controller_operator.resources import PartitionReassignment
from controller_operator.resources.common import FINALIZER
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.reassignment import ReassignmentPhase, ReassignmentStep
from tests.unit.operator.clusters import NOW, ORDERS, healthy, raw, ready, status_of, view

ORDERS_0 = TopicPartition(ORDERS, PartitionId(0))
HERE = view(healthy([1, 2]))
PHASE, STEP = ReassignmentPhase, ReassignmentStep
WITHIN_1 = ((1, 2), ("/b", "any"))
TO_3 = ((1, 3), ("any", "/b"))


def find_places(
    present: Mapping[int, str | None], copied: Mapping[int, int] | None = None, failed: Sequence[str] = ()
) -> Places:
    """Brokers with the directories /a and /b, and a replica of 1000 bytes. `copied`: the bytes of its copy in /b."""
    copies = copied or {}
    return Places(
        answers={
            BrokerId(broker): LogSizes(
                bytes_of={ORDERS_0: 1000} if path else {},
                are_all_seen=not failed,
                directory_of={ORDERS_0: path} if path else {},
                futures={ORDERS_0: FutureLog(directory="/b", bytes=copies[broker], offset_lag=3)}
                if broker in copies
                else {},
                directories={each: each not in failed for each in ("/a", "/b")},
            )
            for broker, path in present.items()
        }
    )


IN_A = find_places({1: "/a", 2: "/a", 3: None})
IN_B = find_places({1: "/b", 2: "/a", 3: "/b"})
LOOK = Context(now=NOW, is_view_fresh=True, places=IN_A)


def move(
    target: tuple[tuple[int, ...], tuple[str, ...]] = WITHIN_1, status: Any = None, **about: Any
) -> PartitionReassignment:
    replicas, log_dirs = target
    metadata = {name: about.pop(name) for name in ("finalizers", "deletionTimestamp", "annotations") if name in about}
    partition = {"topic": ORDERS, "partition": 0, "replicas": replicas, "logDirs": log_dirs}
    return PartitionReassignment.model_validate(
        raw("PartitionReassignment", {"partitions": [partition], **about}, status=status or {}, **metadata)
    )


def replica(broker: int) -> PartitionReplica:
    return PartitionReplica(ORDERS_0, BrokerId(broker))


def answer(plan: Plan[Any], **reply: Any) -> Context:
    """The context after the brokers' answers to the plan's request."""
    (step,) = plan.steps
    assert isinstance(step, PlaceReplicas | ReturnReplicas)
    placed = PlacementReply(step=step, **reply)
    accepted = (replace(step, directories=placed.accepted),) if placed.accepted else ()
    return replace(LOOK, places=None, placements=(placed,), done=accepted)


def step_of(plan: Plan[Any]) -> tuple[ReassignmentStep, str | None]:
    (row,) = plan.status.partitions
    return row.step, row.message


def begin(target: tuple[tuple[int, ...], tuple[str, ...]] = WITHIN_1) -> dict[str, Any]:
    """The status of a move whose brokers were asked for its directories."""
    first = decide(move(target), HERE, LOOK)
    return status_of(decide(move(target, status_of(first)), HERE, answer(first)))


def test_brokers_are_asked_for_the_directory_before_the_partition_moves() -> None:
    first = decide(move(TO_3), HERE, LOOK)
    assert first.status.phase is PHASE.RUNNING
    assert first.steps == (PlaceReplicas(directories={replica(3): "/b"}),)
    second = decide(move(TO_3, status_of(first)), HERE, answer(first))
    assert second.steps == (SubmitReassignment(partitions={ORDERS_0: (BrokerId(1), BrokerId(3))}),)


def test_nothing_begins_before_the_directories_are_known() -> None:
    plan = decide(move(), HERE, replace(LOOK, places=None))
    assert (plan.status.phase, plan.steps) == (PHASE.PENDING, ())
    assert ready(plan).message == "the log directories of broker 1 are being read"
    assert plan.directories == {replica(1): "/b"}, "nobody reads them"
    silent = Places(troubles=("broker 1: it hangs",))
    plan = decide(move(), HERE, replace(LOOK, places=silent))
    assert ready(plan).reason is Reason.BROKERS_UNAVAILABLE
    assert ready(plan).message == "the log directories of broker 1 are not known: broker 1: it hangs"


def test_a_directory_that_the_broker_does_not_have_is_refused_with_those_that_it_has() -> None:
    plan = decide(move(((1, 2), ("/c", "any"))), HERE, LOOK)
    assert (ready(plan).reason, plan.steps) == (Reason.UNKNOWN_LOG_DIRECTORY, ())
    assert ready(plan).message == "orders-0: /c is not a log directory of broker 1, which has /a, /b"
    assert plan.status.condition(ConditionType.STALLED) is not None
    failed = find_places({1: "/a"}, failed=["/b"])
    plan = decide(move(), HERE, replace(LOOK, places=failed))
    assert (ready(plan).reason, plan.steps) == (Reason.LOG_DIRECTORY_FAILED, ())


def test_a_move_whose_replicas_are_in_their_directories_has_nothing_to_do() -> None:
    plan = decide(move(), HERE, replace(LOOK, places=IN_B))
    assert (plan.status.phase, plan.steps) == (PHASE.COMPLETED, ())
    assert ready(plan).message == "all 1 partitions have the replicas of the spec in their log directories"


def test_it_runs_until_the_replica_is_in_its_directory_and_says_how_much_is_left() -> None:
    status = begin()
    assert [row["step"] for row in status["partitions"]] == ["MovingLogDirs"]
    unknown = decide(move(status=status), HERE, replace(LOOK, places=None))
    assert (unknown.status.phase, step_of(unknown)[0], unknown.steps) == (PHASE.RUNNING, STEP.MOVING_LOG_DIRS, ())
    copying = decide(move(status=status), HERE, replace(LOOK, places=find_places({1: "/a"}, {1: 400})))
    assert step_of(copying) == (STEP.MOVING_LOG_DIRS, "is being copied to /b on broker 1: 600 bytes left")
    done = decide(move(status=status), HERE, replace(LOOK, places=IN_B))
    assert (done.status.phase, step_of(done)[0]) == (PHASE.COMPLETED, STEP.DONE)


def test_a_replica_that_its_broker_has_put_elsewhere_is_asked_for_again() -> None:
    status, moved = begin(TO_3), view(healthy([1, 3]))
    status["partitions"][0]["step"] = "CatchingUp"
    absent = decide(move(TO_3, status), moved, LOOK)
    assert (absent.status.phase, absent.steps) == (PHASE.RUNNING, ())
    elsewhere = find_places({1: "/a", 3: "/a"})
    again = decide(move(TO_3, status), moved, replace(LOOK, places=elsewhere))
    assert again.steps == (PlaceReplicas(directories={replica(3): "/b"}),)
    refused = decide(move(TO_3, status), moved, answer(again, refused={replica(3): "it is full"}))
    assert step_of(refused) == (STEP.MOVING_LOG_DIRS, "cannot have /b on broker 3: it is full")
    assert (refused.steps, refused.look_again_in_s) == ((), 5.0)


def test_a_partition_whose_directory_is_refused_does_not_move() -> None:
    first = decide(move(TO_3), HERE, LOOK)
    refused = answer(first, refused={replica(3): "it has no such log directory"})
    plan = decide(move(TO_3, status_of(first)), HERE, refused)
    assert (plan.steps, plan.look_again_in_s) == ((), 5.0)
    assert step_of(plan) == (STEP.WAITING, "cannot have /b on broker 3: it has no such log directory")
    silent = answer(first, unasked={replica(3): "broker 3 is not registered"})
    plan = decide(move(TO_3, status_of(first)), HERE, silent)
    assert (ready(plan).reason, plan.steps) == (Reason.BROKERS_UNAVAILABLE, ())


def test_a_copy_without_progress_and_a_dead_broker_are_named() -> None:
    copying = replace(LOOK, places=find_places({1: "/a"}, {1: 400}))
    idle = replace(copying, stalls=Stalls(idle={ORDERS_0: (BrokerId(1),)}))
    plan = decide(move(status=begin()), HERE, idle)
    assert ready(plan).reason is Reason.COPY_STALLED
    plan = decide(move(status=begin()), view(healthy([1, 2]), brokers=(2, 3)), replace(LOOK, places=Places()))
    assert ready(plan).reason is Reason.BROKERS_MISSING


def test_an_approval_is_for_one_choice_of_directories() -> None:
    def hash_of(target: tuple[tuple[int, ...], tuple[str, ...]]) -> str | None:
        found: str | None = decide(move(target, approval="Required"), HERE, LOOK).status.plan_hash
        return found

    assert None is not hash_of(TO_3) != hash_of(((1, 3), ("any", "/a")))
    plan = decide(move(TO_3, approval="Required", approvedPlan=hash_of(TO_3)), HERE, LOOK)
    assert plan.steps
    assert hash_of(((1, 2), ("/a", "any"))) is None, "it is there already"


def test_a_suspended_or_paused_move_asks_for_no_directory() -> None:
    for about in ({"suspend": True}, {"annotations": {"kontroller.dev/pause": "true"}}):
        plan = decide(move(**about), HERE, LOOK)
        assert (plan.steps, plan.directories) == ((), {replica(1): "/b"})


@pytest.mark.parametrize("target", [WITHIN_1, TO_3])
def test_a_deletion_ends_the_copying_between_directories(target: tuple[tuple[int, ...], tuple[str, ...]]) -> None:
    deleted = {"finalizers": [FINALIZER], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    status, view_ = begin(target), HERE if target is WITHIN_1 else view(healthy([1, 3]))
    first = decide(move(target, status, **deleted), view_, LOOK)
    (step,) = first.steps
    assert isinstance(step, ReturnReplicas)
    last = decide(move(target, status_of(first), **deleted), view_, answer(first))
    assert (last.status.phase, step_of(last)[0]) == (PHASE.CANCELLED, STEP.CANCELLED)
    silent = answer(first, unasked=dict.fromkeys(step.directories, "it hangs"))
    held = decide(move(target, status_of(first), **deleted), view_, silent)
    assert (held.status.phase, ready(held).reason) == (PHASE.RUNNING, Reason.BROKERS_UNAVAILABLE)
    overdue = decide(move(target, status_of(first), **deleted), view_, replace(silent, now=NOW + timedelta(minutes=11)))
    assert (overdue.status.phase, overdue.notices[0].reason) == (PHASE.FAILED, "CancellationFailed")


def test_directories_without_one_for_each_replica_are_no_spec() -> None:
    with pytest.raises(ValueError, match="one log directory for each of the replicas"):
        move(((1, 2), ("/b",)))
