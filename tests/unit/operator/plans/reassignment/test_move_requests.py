"""Requests for moves: the answer for each partition, the number of requests, and the handling of lost answers."""

from collections.abc import Callable, Mapping
from dataclasses import replace
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

from controller_core.client.errors import AdminError, OutcomeUnknown, Unreachable
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import Endpoint
from controller_core.model.snapshot import Snapshot
from controller_core.wire.codecs.frames import encode_request
from controller_core.wire.limits.request_limits import limits_of
from controller_core.wire.messages import NO_THROTTLE
from controller_core.wire.requests.partitions import make_reassignment_request
from controller_core.zk import paths
from controller_core.zk.session import Create
from controller_operator.kafka.actions import SubmitReassignment
from controller_operator.kafka.requests.features import can_be_asked
from controller_operator.kafka.requests.moves import (
    MAX_ASKED,
    REQUEST_TIMEOUT,
    MoveReply,
    Refusal,
    RefusalKind,
    submit_by_request,
)
from controller_operator.resources.schema import MAX_REPLICAS, MAX_TOPIC_NAME
from simulation.fast_loop import run_fast
from simulation.zookeeper import SimulatedZooKeeper
from simulation.zookeeper_session import SimulatedSession
from tests.unit.operator.clusters import broker

Code = ErrorCode


def tp(number: int, topic: str = "orders") -> TopicPartition:
    return TopicPartition(TopicName(topic), PartitionId(number))


def step(count: int) -> SubmitReassignment:
    return SubmitReassignment(partitions={tp(number): (BrokerId(4), BrokerId(5)) for number in range(count)})


class Controller:
    """Answers the requests by `answers`, in order, and all further ones with success."""

    def __init__(self, *answers: Mapping[int, ErrorCode] | ErrorCode | AdminError) -> None:
        self._answers = list(answers)
        self.words = "because of {}"
        """The message of a refusal."""
        self.asked: list[list[int]] = []

    async def ask(self, request: Any, response_type: type[Any]) -> Any:
        assert isinstance(request, AlterPartitionReassignmentsRequest)
        assert response_type is AlterPartitionReassignmentsResponse
        (topic,) = request.topics
        numbers = [int(each.partition_index) for each in topic.partitions]
        self.asked.append(numbers)
        answer = self._answers.pop(0) if self._answers else {}
        if isinstance(answer, AdminError):
            raise answer
        whole, codes = (Code.none, answer) if isinstance(answer, Mapping) else (answer, {})
        partitions = tuple(
            ReassignablePartitionResponse(
                partition_index=each.partition_index,
                error_code=code,
                error_message=None if code is Code.none else self.words.format(each.partition_index),
            )
            for each in topic.partitions
            if (code := codes.get(int(each.partition_index), Code.none)) is not Code.offset_not_available
        )
        return AlterPartitionReassignmentsResponse(
            throttle_time=NO_THROTTLE,
            error_code=whole,
            error_message=None,
            responses=(ReassignableTopicResponse(name=topic.name, partitions=partitions),)
            if whole is Code.none
            else (),
        )


def ask_controller(
    count: int, controller: Controller, disturb: Callable[[SimulatedZooKeeper, SimulatedSession], None] | None = None
) -> MoveReply:
    async def ask() -> MoveReply:
        zookeeper = SimulatedZooKeeper()
        session = zookeeper.session()
        await session.transact([Create(path="/brokers"), Create(path=paths.TOPICS)])
        if disturb is not None:
            disturb(zookeeper, session)
        return await submit_by_request(step(count), controller, session)

    return run_fast(ask())


def list_accepted(reply: MoveReply) -> list[int]:
    return sorted(each.partition for each in reply.accepted)


class TestTheAnswer:
    @pytest.mark.parametrize(
        ("code", "kind"),
        [
            (Code.unknown_topic_or_partition, RefusalKind.UNKNOWN),
            (Code.invalid_replica_assignment, RefusalKind.IMPOSSIBLE),
            (Code.not_controller, RefusalKind.NOT_NOW),
            (Code.request_timed_out, RefusalKind.NOT_NOW),
            (Code.unknown_server_error, RefusalKind.NOT_NOW),
        ],
    )
    def test_a_bad_partition_disturbs_no_good_one_and_keeps_the_controllers_words(
        self, code: ErrorCode, kind: RefusalKind
    ) -> None:
        controller = Controller({1: code}, {1: code})
        reply = ask_controller(3, controller)
        assert (list_accepted(reply), reply.trouble) == ([0, 2], None)
        assert reply.refused == {tp(1): Refusal(kind=kind, said="because of 1")}
        assert controller.asked == [[0, 1, 2], [1]], "what is refused is asked for once more, and nothing else is"

    def test_a_broker_that_gets_no_replicas_at_present_may_get_them_later(self) -> None:
        controller = Controller(*[{1: Code.invalid_replica_assignment}] * 2)
        controller.words = (
            "The manual partition assignment includes broker 5, but all its log directories are cordoned."
        )
        reply = ask_controller(3, controller)
        assert reply.refused == {tp(1): Refusal(kind=RefusalKind.NOT_NOW, said=controller.words)}

    def test_what_the_controller_hears_of_a_moment_later_begins_then(self) -> None:
        reply = ask_controller(3, Controller({1: Code.unknown_topic_or_partition, 2: Code.invalid_replica_assignment}))
        assert (list_accepted(reply), reply.refused) == ([0, 1, 2], {})

    def test_a_partition_without_an_answer_has_not_begun(self) -> None:
        without = {1: Code.offset_not_available}
        reply = ask_controller(2, Controller(without, without))
        assert list_accepted(reply) == [0]
        assert reply.refused[tp(1)].kind is RefusalKind.NOT_NOW

    def test_a_refusal_of_the_whole_request_is_one_of_each_partition(self) -> None:
        refused = Code.cluster_authorization_failed
        reply = ask_controller(2, Controller(refused, refused))
        why = "cluster_authorization_failed (the operator's user lacks the right to Alter the cluster)"
        said = Refusal(kind=RefusalKind.NOT_NOW, said=why)
        assert (reply.accepted, reply.refused) == (frozenset(), {tp(0): said, tp(1): said})


class TestRequests:
    def test_many_are_asked_for_in_several(self) -> None:
        controller = Controller()
        reply = ask_controller(2 * MAX_ASKED + 1, controller)
        assert [len(each) for each in controller.asked] == [MAX_ASKED, MAX_ASKED, 1]
        assert len(reply.accepted) == 2 * MAX_ASKED + 1

    @pytest.mark.parametrize("trouble", [OutcomeUnknown("no answer"), Unreachable("it is not the controller")])
    def test_trouble_in_the_middle_leaves_what_was_answered(self, trouble: AdminError) -> None:
        controller = Controller({3: Code.invalid_replica_assignment}, trouble)
        reply = ask_controller(3 * MAX_ASKED, controller)
        assert len(controller.asked) == 2, "nobody is asked blindly"
        assert (len(reply.accepted), list(reply.refused)) == (MAX_ASKED - 1, [tp(3)])
        assert reply.trouble == str(trouble)

    def test_the_largest_one_is_within_what_our_listener_takes(self) -> None:
        """Each partition of a topic of its own, by the longest names and with the most replicas."""
        replicas = tuple(map(BrokerId, range(2**31 - MAX_REPLICAS, 2**31)))
        targets = {tp(0, f"{number:03}".ljust(MAX_TOPIC_NAME, "x")): replicas for number in range(MAX_ASKED)}
        request = make_reassignment_request(targets, REQUEST_TIMEOUT)
        limits = limits_of(45)
        assert len(encode_request(request, 1, "kontroller")) < limits.max_bytes
        assert limits.max_entries > MAX_ASKED
        assert limits.max_items > MAX_ASKED * (1 + 1 + MAX_REPLICAS)


class TestWhatIsReadOfTheCluster:
    def test_shows_what_was_accepted_or_nothing_counts_as_that(self) -> None:
        def lose_connection(zookeeper: SimulatedZooKeeper, session: SimulatedSession) -> None:
            zookeeper.fail_before_apply(session)

        reply = ask_controller(2, Controller(), lose_connection)
        assert (reply.accepted, reply.refused, reply.trouble) == (frozenset(), {}, None)


@pytest.mark.parametrize(
    ("protocols", "configured", "can_be"),
    [
        (("PLAINTEXT",), None, True),
        (("SSL", "PLAINTEXT"), None, True),
        (("SSL",), None, False),
        (("SSL",), "kafka:9092", True),
        ((), None, True),
    ],
)
def test_the_controller_is_asked_where_any_listener_speaks_as_the_operator_does(
    protocols: tuple[str, ...], configured: str | None, can_be: bool
) -> None:
    endpoints = tuple(Endpoint(listener=each, host="h", port=1, security_protocol=each) for each in protocols)
    view = Snapshot(version=1, brokers={BrokerId(1): replace(broker(1), endpoints=endpoints)})
    assert can_be_asked(configured, view) is can_be
