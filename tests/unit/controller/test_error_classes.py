"""The policy for errors that no operation handles: one for each class of them."""

from collections.abc import Sequence

import pytest
from kio.schema.types import BrokerId as WireBrokerId
from kio.static.primitive import i64

from controller_core.controller.controller import ZooKeeperGone
from controller_core.controller.loop.events import BalanceDue, ReassignmentsEnded
from controller_core.controller.loop.faults import RETRY_MS, Fault, find_fault
from controller_core.controller.operations.leader_rebalance import FIRST_LOOK_AFTER_MS
from controller_core.wire.messages import AllocateProducerIdsRequest, ErrorCode
from controller_core.zk import paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.compare_and_set import ATTEMPTS, Contended
from controller_core.zk.fenced import Fenced
from controller_core.zk.session import (
    AccessRefused,
    BadVersion,
    Check,
    ConnectionLost,
    Create,
    FailedOp,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    TooLarge,
    TransactionFailed,
    WriteOp,
    ZkError,
)
from simulation.checks import assert_sound, simulate_cluster
from simulation.cluster import Cluster, alter_reassignments, tp
from simulation.process import Process, ProcessSettings

ORDERS = tp("orders")
OP = FailedOp(index=0, op=Create(path="/a"))


def a_request(cluster: Cluster) -> AllocateProducerIdsRequest:
    broker = cluster.broker(1)
    return AllocateProducerIdsRequest(broker_id=WireBrokerId(broker.id), broker_epoch=i64(broker.epoch))


def count_errors(process: Process, event: str) -> dict[Fault, float]:
    """Return the number of failed events by class of their errors."""
    found = {fault: process.metric("kontroller_event_errors_total", event=event, fault=fault.value) for fault in Fault}
    return {fault: number for fault, number in found.items() if number}


def reasons(cluster: Cluster) -> list[str]:
    return [line["reason"] for line in cluster.logs if line["event"] == "resigning"]


# The table


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (Fenced("a later controller"), Fault.DEPOSED),
        (SessionExpired("over"), Fault.DEPOSED),
        (ConnectionLost("away"), Fault.ZOOKEEPER_GONE),
        (AccessRefused("no"), Fault.ACCESS_REFUSED),
        (BadVersion(OP), Fault.RETRIABLE),
        (NodeExists(OP), Fault.RETRIABLE),
        (NoNode(OP), Fault.RETRIABLE),
        (NotEmpty(OP), Fault.RETRIABLE),
        (Contended(BadVersion(OP)), Fault.RETRIABLE),
        (TooLarge(OP, size_bytes=2, max_bytes=1), Fault.UNEXPECTED),
        (TransactionFailed(OP), Fault.UNEXPECTED),
        (ZkError("nobody knows this one"), Fault.UNEXPECTED),
        (MalformedZnode("/a", "no JSON"), Fault.UNEXPECTED),
        (KeyError("a mistake of ours"), Fault.UNEXPECTED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value.value,
)
def test_each_error_is_of_one_class(error: Exception, fault: Fault) -> None:
    assert find_fault(error) is fault


def test_only_what_leaves_the_memory_in_doubt_may_be_one_events_alone() -> None:
    assert {fault: fault.policy.answer for fault in Fault if fault.policy.may_go_on} == {
        Fault.RETRIABLE: ErrorCode.request_timed_out,
        Fault.UNEXPECTED: ErrorCode.unknown_server_error,
    }


# Deposed


async def test_who_is_deposed_ends_its_term_gives_nothing_back_and_looks_at_the_role_at_once(served: Cluster) -> None:
    process = served.active
    process.life.errors.append(SessionExpired("in the middle of an event"))
    served.kill_broker(1)
    await served.settle(passing_ms=0)
    assert (process.is_active, process.terms, process.unexpected_errors) == (True, 2, 0)
    assert reasons(served) == ["the role is lost: in the middle of an event"]
    assert served.leadership(ORDERS) == (2, [2, 3])
    assert_sound(served)


# Errors that end the process


async def test_a_process_that_zookeeper_is_out_of_reach_for_says_so_in_its_last_term() -> None:
    async with simulate_cluster() as cluster:
        cluster.settings = ProcessSettings(zookeeper_timeout_ms=1)
        cluster.start_brokers(1)
        process = await cluster.serve()
        cluster.zk.disconnect(process.session)
        process.term.enqueue(ReassignmentsEnded())
        with pytest.raises(ZooKeeperGone):
            await process.running
        assert process.unexpected_errors == 0


async def test_access_that_is_refused_ends_the_process_and_the_term_before_it(served: Cluster) -> None:
    process = served.active
    process.life.errors.append(AccessRefused("somebody changed an ACL"))
    served.kill_broker(1)
    with pytest.raises(AccessRefused):
        await served.settle()
    assert reasons(served) == ["ZooKeeper refuses access: somebody changed an ACL"]
    assert process.unexpected_errors == 0


# Errors of a single request


async def test_a_request_that_always_loses_its_race_is_answered_with_a_retriable_error_and_nobody_else_is_held_up(
    served: Cluster,
) -> None:
    process, lost = served.active, 0

    def always_be_faster(ops: Sequence[WriteOp]) -> None:
        nonlocal lost
        if any(op.path == paths.PRODUCER_ID_BLOCK for op in ops) and any(isinstance(op, Check) for op in ops):
            lost += 1
            served.put(paths.PRODUCER_ID_BLOCK, b"")

    served.zk.interventions.append(always_be_faster)
    assert (await served.request(a_request(served))).error_code is ErrorCode.request_timed_out
    served.zk.interventions.clear()
    assert lost == ATTEMPTS
    assert (process.is_active, process.terms) == (True, 1)
    assert count_errors(process, "RequestReceived") == {Fault.RETRIABLE: 1}
    assert (await served.request(a_request(served))).error_code is ErrorCode.none
    served.surprises_expected = True


async def test_a_request_whose_write_was_refused_has_changed_nothing(served: Cluster) -> None:
    """It loses a race, and meets a mistake of ours when it reads again."""
    process = served.active

    def be_faster(ops: Sequence[WriteOp]) -> None:
        if any(op.path == paths.PRODUCER_ID_BLOCK for op in ops):
            served.zk.interventions.clear()
            served.put(paths.PRODUCER_ID_BLOCK, b"")
            process.life.errors.append(ValueError("a mistake of ours, in what is read after the write"))

    served.zk.interventions.append(be_faster)
    assert (await served.request(a_request(served))).error_code is ErrorCode.unknown_server_error
    assert (process.is_active, process.terms) == (True, 1)
    assert count_errors(process, "RequestReceived") == {Fault.UNEXPECTED: 1}
    served.surprises_expected = True


async def test_a_request_that_may_have_changed_something_ends_the_term(served: Cluster) -> None:
    """It begins a reassignment, and meets a mistake of ours after the write."""
    process = served.active

    def fail_afterwards(ops: Sequence[WriteOp]) -> None:
        if any(op.path == paths.topic(ORDERS.topic) for op in ops):
            served.zk.interventions.clear()
            process.life.errors.append(ValueError("a mistake of ours, in what is read after the write"))

    served.zk.interventions.append(fail_afterwards)
    response = await served.request(alter_reassignments({ORDERS: [2, 3]}))
    assert response.error_code is ErrorCode.not_controller
    await served.settle()
    assert (process.is_active, process.terms) == (True, 2)
    assert count_errors(process, "RequestReceived") == {Fault.UNEXPECTED: 1}
    served.surprises_expected = True


# Errors that are retried


async def test_a_periodic_event_that_failed_and_changed_nothing_is_handled_again_later(served: Cluster) -> None:
    process, name = served.active, ReassignmentsEnded.__name__
    process.life.errors.append(ValueError("a mistake of ours"))
    process.term.enqueue(ReassignmentsEnded())
    await served.settle(passing_ms=RETRY_MS - 20_000)
    handled = process.metric("kontroller_event_time_seconds_count", event=name)
    assert count_errors(process, name) == {Fault.UNEXPECTED: 1}
    assert (process.is_active, process.terms) == (True, 1)
    await served.settle(passing_ms=20_000)
    assert process.metric("kontroller_event_time_seconds_count", event=name) == (handled or 0) + 1
    assert count_errors(process, name) == {Fault.UNEXPECTED: 1}
    served.kill_broker(1)
    await served.settle()
    assert served.leadership(ORDERS) == (2, [2, 3]), "what matters goes on"
    served.surprises_expected = True


async def test_a_periodic_event_that_may_have_changed_something_ends_the_term() -> None:
    async with simulate_cluster() as cluster:
        cluster.settings = ProcessSettings(auto_leader_rebalance_enable=True)
        cluster.start_brokers(1, 2)
        process = await cluster.serve()
        cluster.create_topic("orders", [1, 2])
        await cluster.settle()
        cluster.bounce_broker(1)
        await cluster.settle(passing_ms=0)
        await cluster.replicate()

        def fail(ops: Sequence[WriteOp]) -> None:
            if any(op.path == paths.partition_state(ORDERS) for op in ops):
                cluster.zk.interventions.clear()
                raise ZkError("nobody knows this one, nor what became of the write")

        cluster.zk.interventions.append(fail)
        process.term.enqueue(BalanceDue())
        await cluster.settle(passing_ms=0)
        assert count_errors(process, "BalanceDue") == {Fault.UNEXPECTED: 1}
        assert not process.is_active
        await cluster.settle(passing_ms=FIRST_LOOK_AFTER_MS + 3000)
        assert process.terms == 2
        assert cluster.leadership(ORDERS)[0] == 1
        cluster.surprises_expected = True


async def test_any_other_event_that_failed_ends_the_term_which_counts_as_failed(served: Cluster) -> None:
    process = served.active
    process.life.errors.append(Contended(BadVersion(OP)))
    served.kill_broker(1)
    await served.settle(passing_ms=0)
    assert count_errors(process, "BrokerModified") == {Fault.RETRIABLE: 1}
    assert not process.is_active
    assert not served.exists(paths.CONTROLLER), "the role is given back, and left to others for a while"
    await served.settle()
    assert (process.is_active, process.terms) == (True, 2)
    assert served.leadership(ORDERS) == (2, [2, 3])
    served.surprises_expected = True
