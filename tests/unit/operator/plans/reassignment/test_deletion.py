"""A running move that is deleted goes back to its original replicas. Moves of others do not, and nothing hangs for
ever."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.alter_partition_reassignments.v0 import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from kio.schema.alter_partition_reassignments.v0.response import (
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32
from kio.static.protocol import RequestPayload

from controller_core.client.errors import AdminError, Unreachable
from controller_core.model.ids import BrokerId, PartitionId, TopicPartition
from controller_core.model.metadata import ReassignmentPlan
from controller_core.model.snapshot import Snapshot
from controller_core.wire.messages import NO_THROTTLE
from controller_operator.kafka.requests.cancellations import CancelReassignment, CancelReply, cancel_reassignment
from controller_operator.plans.outcome import DELETION_PATIENCE, Context, FinalizerWish, Plan
from controller_operator.plans.reassignment.planner import decide
from controller_operator.resources import PartitionReassignment
from controller_operator.resources.common import FINALIZER, PAUSE_ANNOTATION
from controller_operator.resources.conditions import Reason
from controller_operator.resources.reassignment import ReassignmentPhase, ReassignmentStep
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

FRESH = Context(now=NOW, is_view_fresh=True)
TARGETS = {0: [4, 5, 6], 1: [4, 5, 6]}
MOVING = (assign([4, 5, 6, 1, 2, 3], [4, 5, 6], [1, 2, 3]), lead(1, [1, 2, 3]))
BACK = (assign([1, 2, 3]), lead(1, [1, 2, 3]))
THERE = (assign([4, 5, 6]), lead(4, [4, 5, 6]))
ELSEWHERE = (assign([3, 5, 1, 2], [5], [1, 2]), lead(1, [1, 2, 3]))


def tp(number: int) -> TopicPartition:
    return TopicPartition(ORDERS, PartitionId(number))


def make_deleted(**metadata: Any) -> PartitionReassignment:
    """A move of two partitions from 1, 2, 3 to 4, 5, 6 that runs, and is being deleted."""
    begun = decide(reassignment(TARGETS), view(healthy([1, 2, 3], [1, 2, 3])), Context(now=NOW))
    assert begun.finalizer is FinalizerWish.HOLD
    about = {"deletionTimestamp": NOW.isoformat(), "finalizers": [FINALIZER], **metadata}
    return reassignment(TARGETS, status=status_of(begun), **about)


def list_asked(plan: Plan[Any]) -> list[tuple[TopicPartition, ...]]:
    assert all(isinstance(step, CancelReassignment) for step in plan.steps)
    return [step.partitions for step in plan.steps if isinstance(step, CancelReassignment)]


def steps_of(plan: Plan[Any]) -> dict[int, ReassignmentStep]:
    return {int(row.partition): row.step for row in plan.status.partitions}


def reply(*partitions: int, **about: Any) -> CancelReply:
    return CancelReply(step=CancelReassignment(partitions=tuple(map(tp, partitions))), **about)


def add_answers(*replies: CancelReply) -> Context:
    return replace(FRESH, cancellations=replies)


def test_a_move_that_runs_is_held_once_and_one_that_has_ended_never_again() -> None:
    move = make_deleted(deletionTimestamp=None)
    assert decide(move, view(topic(MOVING, MOVING)), FRESH).finalizer is FinalizerWish.KEEP_AS_IS
    bare = make_deleted(deletionTimestamp=None, finalizers=[])
    assert decide(bare, view(topic(MOVING, MOVING)), FRESH).finalizer is FinalizerWish.HOLD
    assert decide(bare, view(topic(THERE, THERE)), FRESH).finalizer is FinalizerWish.KEEP_AS_IS


def test_what_still_moves_is_cancelled_and_then_the_run_is_over() -> None:
    first = decide(make_deleted(), view(topic(MOVING, THERE)), FRESH)
    assert list_asked(first) == [(tp(0),)]
    assert first.status.phase is ReassignmentPhase.RUNNING
    waiting = decide(make_deleted(), view(topic(MOVING, THERE)), add_answers(reply(0)))
    assert (waiting.steps, waiting.status.phase) == ((), ReassignmentPhase.RUNNING)
    assert waiting.look_again_in_s is not None
    last = decide(make_deleted(), view(topic(BACK, THERE)), add_answers(reply(0)))
    assert (last.steps, last.status.phase, last.status.completion_time) == ((), ReassignmentPhase.CANCELLED, NOW)
    assert steps_of(last) == {0: ReassignmentStep.CANCELLED, 1: ReassignmentStep.DONE}
    assert ready(last).reason is Reason.CANCELLED
    assert [notice.reason for notice in last.notices] == ["ReassignmentCancelled"]


def test_nothing_is_concluded_from_a_view_that_may_be_old() -> None:
    plan = decide(make_deleted(), view(topic(BACK, BACK)), Context(now=NOW))
    assert plan.needs_fresh_view
    assert (plan.steps, plan.notices) == ((), ())


def test_another_tools_later_move_of_a_partition_is_left_alone() -> None:
    plan = decide(make_deleted(), view(topic(ELSEWHERE, MOVING)), FRESH)
    assert list_asked(plan) == [(tp(1),)]
    last = decide(make_deleted(), view(topic(ELSEWHERE, BACK)), add_answers(reply(1)))
    assert steps_of(last) == {0: ReassignmentStep.SUPERSEDED, 1: ReassignmentStep.CANCELLED}


def test_another_tools_move_to_the_same_target_from_elsewhere_is_left_alone() -> None:
    other = (assign([4, 5, 6, 2, 3], [4, 5, 6], [2, 3]), lead(2, [2, 3]))
    plan = decide(make_deleted(), view(topic(other, BACK)), FRESH)
    assert (plan.steps, plan.status.phase) == ((), ReassignmentPhase.CANCELLED)


def test_a_partition_that_was_done_and_moves_again_is_left_alone() -> None:
    move = make_deleted(deletionTimestamp=None)
    done = decide(move, view(topic(THERE, MOVING)), FRESH)
    status = status_of(done)
    again = reassignment(TARGETS, status=status, deletionTimestamp=NOW.isoformat(), finalizers=[FINALIZER])
    assert list_asked(decide(again, view(topic(MOVING, MOVING)), FRESH)) == [(tp(1),)]


def test_a_request_that_nobody_has_taken_up_yet_is_cancelled_as_well() -> None:
    request = ReassignmentPlan(partitions={tp(0): tuple(map(BrokerId, (4, 5, 6)))})
    plan = decide(make_deleted(), view(topic(BACK, BACK), reassignment=request), FRESH)
    assert list_asked(plan) == [(tp(0),)]


def test_a_move_that_was_never_asked_for_takes_nobody_elses_back() -> None:
    pending = reassignment(TARGETS, deletionTimestamp=NOW.isoformat(), finalizers=[FINALIZER])
    plan = decide(pending, view(topic(MOVING, MOVING)), FRESH)
    assert (plan.steps, plan.status.phase) == ((), ReassignmentPhase.CANCELLED)


@pytest.mark.parametrize("seen", [view(), view(topic(MOVING, MOVING), deleting=frozenset([ORDERS]))])
def test_nothing_is_asked_for_a_topic_that_goes_or_is_gone(seen: Snapshot) -> None:
    plan = decide(make_deleted(), seen, FRESH)
    assert (plan.steps, plan.status.phase) == ((), ReassignmentPhase.CANCELLED)
    assert set(steps_of(plan).values()) == {ReassignmentStep.FAILED}


def test_a_refusal_ends_the_run_with_the_controllers_words() -> None:
    refusal = reply(0, 1, refused=((tp(0), "not you"),))
    plan = decide(make_deleted(), view(topic(MOVING, MOVING)), add_answers(refusal))
    assert (plan.status.phase, ready(plan).reason) == (ReassignmentPhase.FAILED, Reason.REQUEST_REFUSED)
    assert [(notice.reason, notice.is_warning) for notice in plan.notices] == [("CancellationFailed", True)]
    assert "not you" in plan.notices[0].message


@pytest.mark.parametrize(
    ("seen", "context", "reason"),
    [
        (view(topic(MOVING, MOVING), controller=None), FRESH, Reason.NO_CONTROLLER),
        (view(topic(MOVING, MOVING)), add_answers(reply(0, trouble="nobody answers")), Reason.BROKERS_UNAVAILABLE),
    ],
)
def test_it_waits_for_a_controller_that_answers_but_not_for_ever(
    seen: Snapshot, context: Context, reason: Reason
) -> None:
    plan = decide(make_deleted(), seen, context)
    assert (plan.steps, plan.status.phase, ready(plan).reason) == ((), ReassignmentPhase.RUNNING, reason)
    assert plan.look_again_in_s is not None
    late = replace(context, now=NOW + DELETION_PATIENCE + timedelta(seconds=1))
    last = decide(make_deleted(), seen, late)
    assert last.status.phase is ReassignmentPhase.FAILED
    assert [notice.reason for notice in last.notices] == ["CancellationFailed"]


def test_pausing_lets_the_object_go_and_the_move_run() -> None:
    move = make_deleted(annotations={PAUSE_ANNOTATION: "true"})
    plan = decide(move, view(topic(MOVING, MOVING)), FRESH)
    assert (plan.steps, plan.finalizer) == ((), FinalizerWish.RELEASE)
    assert [notice.reason for notice in plan.notices] == ["ReassignmentLeft"]


class Controller:
    """A controller that answers every request the same way, and notes its requests."""

    def __init__(self, answer: AlterPartitionReassignmentsResponse | AdminError) -> None:
        self._answer = answer
        self.asked: list[AlterPartitionReassignmentsRequest] = []

    async def ask(self, request: RequestPayload, response_type: Callable[..., Any]) -> Any:
        assert isinstance(request, AlterPartitionReassignmentsRequest)
        assert response_type is AlterPartitionReassignmentsResponse
        self.asked.append(request)
        if isinstance(self._answer, AdminError):
            raise self._answer
        return self._answer


def answer(
    codes: Sequence[ErrorCode] = (), error_code: ErrorCode = ErrorCode.none
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        throttle_time=NO_THROTTLE,
        error_code=error_code,
        error_message=None,
        responses=(
            ReassignableTopicResponse(
                name=WireTopicName(ORDERS),
                partitions=tuple(
                    ReassignablePartitionResponse(partition_index=i32(number), error_code=code, error_message=None)
                    for number, code in enumerate(codes)
                ),
            ),
        ),
    )


STEP = CancelReassignment(partitions=(tp(0), tp(1), tp(2)))
WITHOUT_THE_RIGHT = "cluster_authorization_failed (the operator's user lacks the right to Alter the cluster)"


async def test_a_cancellation_names_no_replicas_and_only_a_real_refusal_is_one() -> None:
    codes = (ErrorCode.none, ErrorCode.no_reassignment_in_progress, ErrorCode.cluster_authorization_failed)
    controller = Controller(answer(codes))
    refused = ((tp(2), WITHOUT_THE_RIGHT),)
    assert await cancel_reassignment(STEP, controller) == CancelReply(step=STEP, refused=refused)
    (request,) = controller.asked
    assert [
        (str(each.name), part.partition_index, part.replicas) for each in request.topics for part in each.partitions
    ] == [(ORDERS, 0, None), (ORDERS, 1, None), (ORDERS, 2, None)]


async def test_a_refusal_of_the_whole_request_is_one_of_every_partition() -> None:
    said = await cancel_reassignment(STEP, Controller(answer((), ErrorCode.cluster_authorization_failed)))
    assert said.refused == tuple((each, WITHOUT_THE_RIGHT) for each in STEP.partitions)


async def test_an_error_is_trouble_for_the_plan_to_report() -> None:
    controller = Controller(Unreachable("nobody is there"))
    assert await cancel_reassignment(STEP, controller) == CancelReply(step=STEP, trouble="nobody is there")
