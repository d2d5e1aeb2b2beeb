"""An unclean election gives a leader to partitions without one, and to no others, and says what records may be lost."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from kio.schema.elect_leaders.v2 import ElectLeadersRequest, ElectLeadersResponse
from kio.schema.elect_leaders.v2.response import PartitionResult, ReplicaElectionResult
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32
from kio.static.protocol import RequestPayload
from pydantic import ValidationError

from controller_core.client.errors import AdminError, Unreachable
from controller_core.model.ids import PartitionId, TopicPartition
from controller_core.model.metadata import PreferredElectionPlan
from controller_core.model.snapshot import Snapshot
from controller_core.wire.messages import NO_THROTTLE
from controller_operator.kafka.requests.elections import ElectionReply, ElectUnclean, elect_unclean
from controller_operator.plans.election.planner import decide
from controller_operator.plans.outcome import Context, Plan
from controller_operator.resources import PreferredElection
from controller_operator.resources.conditions import Reason
from controller_operator.resources.election import ElectionPhase, ElectionResult
from tests.unit.operator.clusters import NOW, ORDERS, assign, election, healthy, lead, ready, status_of, topic, view

LOOK = Context(now=NOW)
FRESH = replace(LOOK, is_view_fresh=True)
LED = (assign([1, 2]), lead(2, [2]))
LEADERLESS = (assign([9, 2]), lead(-1, [9]))
LED_BY_ONE_THAT_IS_GONE = (assign([9, 3]), lead(9, [9]))
NOBODY_ALIVE = (assign([8, 9]), lead(-1, [9]))
NEVER_LED = (assign([1, 2]), None)
NOW_LED_BY_2 = (assign([9, 2]), lead(2, [2]))


def unclean(status: dict[str, Any] | None = None, **scope: Any) -> PreferredElection:
    named = scope or {"topics": [ORDERS]}
    return election({**named, "electionType": "Unclean", "acknowledgeDataLoss": True}, status=status or {})


def tp(number: int) -> TopicPartition:
    return TopicPartition(ORDERS, PartitionId(number))


def list_asked(plan: Plan[Any]) -> list[int]:
    assert all(isinstance(step, ElectUnclean) for step in plan.steps)
    return [each.partition for step in plan.steps if isinstance(step, ElectUnclean) for each in step.partitions]


def answer_step(first: Plan[Any], refused: dict[int, str] | None = None, trouble: str | None = None) -> Context:
    """Return the context of the next plan in the same reconciliation."""
    (step,) = first.steps
    assert isinstance(step, ElectUnclean)
    named = tuple((tp(number), said) for number, said in (refused or {}).items())
    reply = ElectionReply(step=step, refused=named, trouble=trouble)
    return replace(LOOK, done=() if trouble else (step,), elections=(reply,))


def look(cluster: Snapshot, first: Plan[Any] | None = None, context: Context | None = None, **scope: Any) -> Plan[Any]:
    """The first look, over a view of now, or one after it."""
    status = status_of(first) if first else None
    return decide(unclean(status, **scope), cluster, context or (LOOK if first else FRESH))


class TestAsking:
    def test_is_for_partitions_without_a_live_leader_alone(self) -> None:
        cluster = view(topic(LED, LEADERLESS, LED_BY_ONE_THAT_IS_GONE, NOBODY_ALIVE, NEVER_LED))
        plan = look(cluster)
        assert list_asked(plan) == [1, 2]
        rows = {row.partition: row for row in plan.status.partitions}
        assert rows[PartitionId(0)].result is ElectionResult.NOT_NEEDED
        assert [rows[PartitionId(number)].result for number in (3, 4)] == [ElectionResult.FAILED] * 2
        assert "[8, 9] is alive" in (rows[PartitionId(3)].message or "")
        assert "nothing to lose" in (rows[PartitionId(4)].message or "")

    def test_puts_the_leader_and_the_isr_before_on_record_first(self) -> None:
        plan = look(view(topic(LEADERLESS)))
        (row,) = plan.status.partitions
        assert (plan.status.phase, row.leader_before, row.isr_before) == (ElectionPhase.RUNNING, -1, (9,))

    def test_needs_no_znode_and_waits_for_none(self) -> None:
        busy = view(topic(LEADERLESS), preferred_election=PreferredElectionPlan(partitions=(tp(0),)))
        assert list_asked(look(busy)) == [0]

    def test_does_not_begin_while_something_else_holds_the_deleted_object(self) -> None:
        taken_back: dict[str, Any] = {"deletionTimestamp": NOW.isoformat(), "finalizers": ["foregroundDeletion"]}
        scope = {"topics": [ORDERS], "electionType": "Unclean", "acknowledgeDataLoss": True}
        plan = decide(election(scope, **taken_back), view(topic(LEADERLESS)), FRESH)
        assert (plan.steps, plan.status.phase) == ((), None)

    def test_waits_for_a_controller(self) -> None:
        plan = look(view(topic(LEADERLESS), controller=None))
        assert (plan.steps, ready(plan).reason) == ((), Reason.NO_CONTROLLER)

    def test_is_over_at_once_where_every_partition_has_a_leader_in_a_view_of_now(self) -> None:
        assert look(view(healthy([1, 2])), context=LOOK).needs_fresh_view, "it may have died a moment ago"
        plan = look(view(healthy([1, 2])))
        assert (plan.status.phase, plan.steps) == (ElectionPhase.COMPLETED, ())

    @pytest.mark.parametrize("acknowledged", [{}, {"acknowledgeDataLoss": False}])
    def test_does_not_begin_without_the_word_of_a_person(self, acknowledged: dict[str, Any]) -> None:
        with pytest.raises(ValidationError, match="acknowledgeDataLoss"):
            election({"topics": [ORDERS], "electionType": "Unclean", **acknowledged})


class TestApproval:
    def test_nothing_is_asked_for_before_the_very_plan_is_approved(self) -> None:
        cluster = view(topic(LEADERLESS, LED))
        waiting = look(cluster, topics=[ORDERS], approval="Required")
        assert (waiting.status.phase, waiting.steps) == (ElectionPhase.AWAITING_APPROVAL, ())
        assert ready(waiting).reason is Reason.AWAITING_APPROVAL
        assert f"set approvedPlan to {waiting.status.plan_hash}" in ready(waiting).message
        assert waiting.status.start_time is None
        given = {"topics": [ORDERS], "approval": "Required", "approvedPlan": waiting.status.plan_hash}
        approved = look(cluster, waiting, FRESH, **given)
        assert list_asked(approved) == [0]

    def test_an_approval_does_not_hold_for_other_partitions_or_another_isr(self) -> None:
        waiting = look(view(topic(LEADERLESS, LED)), topics=[ORDERS], approval="Required")
        given = {"topics": [ORDERS], "approval": "Required", "approvedPlan": waiting.status.plan_hash}
        for changed in (topic(LEADERLESS, LEADERLESS), topic((assign([9, 2]), lead(-1, [8])), LED)):
            plan = look(view(changed), waiting, **given)
            assert (plan.status.phase, plan.steps) == (ElectionPhase.AWAITING_APPROVAL, ())
            assert "is another plan" in ready(plan).message

    def test_once_begun_it_goes_on(self) -> None:
        cluster = view(topic(LEADERLESS))
        due = look(cluster, topics=[ORDERS], approval="Required").status.plan_hash
        begun = look(cluster, topics=[ORDERS], approval="Required", approvedPlan=due)
        assert begun.status.phase is ElectionPhase.RUNNING
        again = look(cluster, begun, FRESH, topics=[ORDERS], approval="Required")
        assert list_asked(again) == [0]


class TestTheEnd:
    def test_says_for_each_partition_what_may_be_lost(self) -> None:
        first = look(view(topic(LEADERLESS, LED)))
        plan = look(view(topic(NOW_LED_BY_2, LED)), first, answer_step(first))
        assert plan.status.phase is ElectionPhase.COMPLETED
        row = plan.status.partitions[0]
        assert (row.result, row.leader_before, row.leader_after, row.isr_before) == (
            ElectionResult.ELECTED,
            -1,
            2,
            (9,),
        )
        assert row.message == "broker 2 was not in sync: records that only [9] had may be lost"
        warning, ended = plan.notices
        assert (warning.reason, warning.is_warning) == ("UncleanLeaderElected", True)
        assert warning.message == f"{ORDERS}-0: leader before -1, {row.message}"
        assert ended.message == "1 elected, 1 not needed, 1 may have lost records"

    def test_warns_of_nothing_where_a_replica_in_sync_came_back(self) -> None:
        first = look(view(topic(LEADERLESS)))
        back = view(topic((assign([9, 2]), lead(9, [9]))), brokers=(1, 2, 9))
        plan = look(back, first, answer_step(first))
        assert [notice.reason for notice in plan.notices] == ["ElectionCompleted"]
        assert plan.status.partitions[0].message == "broker 9 was in sync: nothing is lost"

    def test_has_few_events_where_many_partitions_lost(self) -> None:
        first = look(view(topic(*[LEADERLESS] * 300)))
        plan = look(view(topic(*[NOW_LED_BY_2] * 300)), first, answer_step(first))
        assert len(plan.notices) == 2
        assert "300 partitions have leaders that were not in sync" in plan.notices[0].message

    def test_says_what_the_controller_refused(self) -> None:
        cluster = view(topic(LEADERLESS))
        first = look(cluster)
        context = replace(answer_step(first, {0: "the topic is being deleted"}), is_view_fresh=True)
        plan = look(cluster, first, context)
        assert (plan.status.phase, ready(plan).reason) == (ElectionPhase.FAILED, Reason.PARTITIONS_FAILED)
        assert plan.status.partitions[0].message == "the topic is being deleted"

    def test_does_not_believe_an_answer_that_does_not_show(self) -> None:
        cluster = view(topic(LEADERLESS))
        first = look(cluster)
        assert look(cluster, first, answer_step(first)).needs_fresh_view
        plan = look(cluster, first, replace(answer_step(first), is_view_fresh=True))
        assert (plan.status.phase, plan.steps) == (ElectionPhase.FAILED, ())


class TestARestart:
    def test_asks_again_for_what_still_has_no_leader(self) -> None:
        cluster = view(topic(LEADERLESS, LED))
        first = look(cluster)
        assert list_asked(look(cluster, first, FRESH)) == [0]

    def test_finds_what_was_elected(self) -> None:
        first = look(view(topic(LEADERLESS)))
        plan = look(view(topic(NOW_LED_BY_2)), first)
        assert (plan.status.phase, plan.steps) == (ElectionPhase.COMPLETED, ())
        assert plan.notices[0].reason == "UncleanLeaderElected"

    def test_leaves_what_had_a_leader_when_it_began_alone(self) -> None:
        """Nobody has judged the loss of records there."""
        first = look(view(topic(LEADERLESS, *[LED] * 600)), topics=[ORDERS])
        worse = view(topic(LEADERLESS, *[LED] * 599, (assign([9, 2]), lead(-1, [9]))))
        plan = look(worse, first, FRESH)
        assert list_asked(plan) == [0]
        assert plan.status.counts.not_needed == 600

    def test_waits_with_the_next_try_where_the_controller_cannot_be_asked(self) -> None:
        cluster = view(topic(LEADERLESS))
        first = look(cluster)
        plan = look(cluster, first, answer_step(first, trouble="nobody answers"))
        assert (plan.status.phase, plan.steps, plan.look_again_in_s) == (ElectionPhase.RUNNING, (), 5.0)
        assert ready(plan).reason is Reason.BROKERS_UNAVAILABLE


class Controller:
    """A controller that answers every request the same way, and notes its requests."""

    def __init__(self, answer: ElectLeadersResponse | AdminError) -> None:
        self._answer = answer
        self.asked: list[ElectLeadersRequest] = []

    async def ask(self, request: RequestPayload, response_type: Callable[..., Any]) -> Any:
        assert isinstance(request, ElectLeadersRequest)
        assert response_type is ElectLeadersResponse
        self.asked.append(request)
        if isinstance(self._answer, AdminError):
            raise self._answer
        return self._answer


def answer(*codes: ErrorCode, whole: ErrorCode = ErrorCode.none) -> ElectLeadersResponse:
    results = tuple(
        PartitionResult(partition_id=i32(number), error_code=code, error_message=None)
        for number, code in enumerate(codes)
    )
    topics = (ReplicaElectionResult(topic=WireTopicName(ORDERS), partition_result=results),)
    return ElectLeadersResponse(throttle_time=NO_THROTTLE, error_code=whole, replica_election_results=topics)


class TestTheRequest:
    STEP = ElectUnclean(partitions=(tp(2), tp(0), tp(1)))

    async def test_names_the_partitions_by_topic_and_asks_for_an_unclean_election(self) -> None:
        controller = Controller(answer())
        await elect_unclean(self.STEP, controller)
        (request,) = controller.asked
        assert request.election_type == 1
        assert [(str(each.topic), each.partitions) for each in request.topic_partitions or ()] == [
            ("orders", (0, 1, 2))
        ]

    async def test_takes_a_leader_that_is_there_for_no_refusal(self) -> None:
        codes = (ErrorCode.none, ErrorCode.election_not_needed, ErrorCode.eligible_leaders_not_available)
        reply = await elect_unclean(self.STEP, Controller(answer(*codes)))
        assert reply == ElectionReply(step=self.STEP, refused=((tp(2), "eligible_leaders_not_available"),))

    async def test_is_refused_whole(self) -> None:
        reply = await elect_unclean(self.STEP, Controller(answer(whole=ErrorCode.cluster_authorization_failed)))
        assert {partition for partition, _ in reply.refused} == set(self.STEP.partitions)

    @pytest.mark.parametrize("trouble", [Unreachable("nobody is there"), answer(ErrorCode.request_timed_out)])
    async def test_without_an_answer_leaves_everything_open(self, trouble: Any) -> None:
        reply = await elect_unclean(self.STEP, Controller(trouble))
        assert reply.trouble is not None
        assert not reply.refused
