"""A requested holder gets the role. Stale, strange or unreadable requests do not move it."""

from dataclasses import replace

import pytest

from controller_core.controller.role.hindrance import Hindrance
from controller_core.controller.role.requested_role import make_brokers_request, make_process_request
from controller_core.controller.role.wishes import VACANT_MS
from controller_core.model.ids import BrokerId
from controller_core.zk import codecs, paths
from controller_core.zk.session import Create, Delete, WriteOp
from simulation.checks import assert_sound
from simulation.cluster import CONTROLLER, Cluster
from simulation.process import Process
from tests.unit.controller.role.test_standing import hindrances, holder, let_kafka_fill_in

STANDBY = BrokerId(2000)


def request(cluster: Cluster, op: Create) -> None:
    """Request another holder, like a command whose session stays alive."""
    parents: list[WriteOp] = [] if cluster.exists(paths.KONTROLLER) else [Create(path=paths.KONTROLLER)]
    cluster.write(*parents, op, owner=cluster.zk.new_session_id())


def epoch(cluster: Cluster) -> int:
    data = cluster.data(paths.CONTROLLER_EPOCH)
    assert data is not None
    return codecs.decode_controller_epoch(data)


def read_process(cluster: Cluster, process: int) -> codecs.ProcessZnode:
    data = cluster.data(paths.process(BrokerId(process)))
    assert data is not None
    return codecs.decode_process("", data)


async def serve_with_standby(cluster: Cluster) -> tuple[Process, Process]:
    cluster.start_brokers(1, 2)
    cluster.create_topic("orders", [1, 2])
    let_kafka_fill_in(cluster, 1)
    first = await cluster.serve()
    second = cluster.start_controller(STANDBY)
    await cluster.settle()
    return first, second


# Between two of ours


async def test_a_process_that_is_asked_takes_the_role_from_another_and_no_broker_has_it_in_between(
    cluster: Cluster,
) -> None:
    first, second = await serve_with_standby(cluster)
    before = epoch(cluster)
    request(cluster, make_process_request(STANDBY))
    await cluster.settle()
    assert (second.is_active, first.is_active, epoch(cluster)) == (True, False, before + 1)
    assert not cluster.exists(paths.ROLE_REQUEST), "it is good for one time"
    assert (read_process(cluster, STANDBY).leads_under, read_process(cluster, CONTROLLER).leads_under) == (
        before + 1,
        None,
    )
    assert_sound(cluster)


async def test_two_that_are_asked_in_turns_do_not_fight(cluster: Cluster) -> None:
    first, second = await serve_with_standby(cluster)
    before = epoch(cluster)
    for asked in (STANDBY, CONTROLLER, STANDBY):
        request(cluster, make_process_request(BrokerId(asked)))
        await cluster.settle(passing_ms=60_000)
        assert holder(cluster) == asked
    assert epoch(cluster) == before + 3
    assert (first.terms, second.terms) == (2, 2)


async def test_whoever_takes_the_role_uses_a_request_up_that_names_a_process_that_is_not_there(
    cluster: Cluster,
) -> None:
    cluster.start_brokers(1)
    request(cluster, make_process_request(STANDBY))
    first = await cluster.serve()
    assert not cluster.exists(paths.ROLE_REQUEST)
    second = cluster.start_controller(STANDBY)
    await cluster.settle(passing_ms=60_000)
    assert (first.is_active, second.terms) == (True, 0)


async def test_a_process_that_ends_passes_the_role_on_before_a_broker_can_have_it(cluster: Cluster) -> None:
    first, second = await serve_with_standby(cluster)
    before = epoch(cluster)
    await first.stop()
    await cluster.settle()
    assert (second.is_active, epoch(cluster)) == (True, before + 1)
    assert not cluster.exists(paths.ROLE_REQUEST)


async def test_a_process_that_ends_gives_the_role_to_anybody_where_the_next_one_does_not_take_it(
    cluster: Cluster,
) -> None:
    cluster.start_brokers(1)
    first = await cluster.serve()
    sign = codecs.encode_process(codecs.ProcessZnode(whereabouts="nowhere", is_hot=True))
    cluster.write(Create(path=paths.process(STANDBY), data=sign))
    await first.stop()
    assert (holder(cluster), cluster.exists(paths.ROLE_REQUEST)) == (None, False)


# Kafka's brokers


async def test_a_role_that_is_handed_over_stays_with_kafkas_brokers_until_that_is_taken_back(cluster: Cluster) -> None:
    first, second = await serve_with_standby(cluster)
    request(cluster, make_brokers_request())
    await cluster.settle(passing_ms=300_000)
    assert holder(cluster) == 1
    assert hindrances(first) == hindrances(second) == {Hindrance.HANDED_OVER}
    assert first.controller.check_readiness().is_ready, "nothing is wrong with it"
    third = cluster.start_controller(3000)
    await cluster.settle(passing_ms=300_000)
    assert (holder(cluster), third.terms) == (1, 0), "nor does one that is started later take it"
    cluster.write(Delete(path=paths.ROLE_REQUEST))
    await cluster.settle()
    assert_sound(cluster)


async def test_a_role_that_is_handed_over_and_that_no_broker_takes_is_taken_and_kept(cluster: Cluster) -> None:
    cluster.start_brokers(1)
    first = await cluster.serve()
    request(cluster, make_brokers_request())
    await cluster.settle(passing_ms=VACANT_MS - 1000)
    assert holder(cluster) is None
    await cluster.settle(passing_ms=300_000)
    assert (first.is_active, first.terms) == (True, 2)


async def test_a_process_that_shares_the_role_takes_it_from_a_broker_only_when_it_is_asked(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2)
    cluster.make_kafka_controller(1)
    cluster.settings = replace(cluster.settings, exclusive=False)
    process = cluster.start_controller()
    await cluster.settle(passing_ms=300_000)
    assert (holder(cluster), hindrances(process)) == (1, {Hindrance.SHARED})
    assert process.controller.check_readiness().is_ready
    request(cluster, make_process_request(CONTROLLER))
    await cluster.settle()
    assert (process.is_active, hindrances(process)) == (True, set())


async def test_brokers_that_get_the_role_again_and_again_keep_it_for_longer_each_time(cluster: Cluster) -> None:
    cluster.start_brokers(1)
    let_kafka_fill_in(cluster, 1)
    process = await cluster.serve()
    for _ in range(3):
        cluster.write(Delete(path=paths.CONTROLLER))
        await cluster.settle(passing_ms=10)
    assert hindrances(process) == {Hindrance.TAKEN_TOO_OFTEN}
    assert holder(cluster) == 1
    await cluster.settle(passing_ms=1000)
    assert process.is_active


# Znodes that are not a request


@pytest.mark.parametrize(
    "data", [b"", b"{garbled", b"7", b'{"version":1}', b'{"holder":-1}', b'{"version":7,"holder":1}']
)
async def test_a_request_that_cannot_be_read_asks_for_nothing_and_is_reported(cluster: Cluster, data: bytes) -> None:
    first, _ = await serve_with_standby(cluster)
    request(cluster, Create(path=paths.ROLE_REQUEST, data=data))
    await cluster.settle(passing_ms=60_000)
    assert (first.is_active, first.terms) == (True, 1)
    assert "unreadable request for the role, ignored" in [line["event"] for line in cluster.logs]
