"""A process leaves the role alone if terms fail, brokers are out of reach, KRaft migrates, or another standby is hot.

No two living processes have one id.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from controller_core.controller.role.hindrance import Hindrance
from controller_core.controller.role.presence import ANSWER_MS, IdInUse
from controller_core.controller.role.wishes import YIELD_MS
from controller_core.model.ids import BrokerId
from controller_core.zk import codecs, paths
from controller_core.zk.session import Create, CreateMode, Delete, SetData, WriteOp, ZkError
from simulation.checks import assert_sound
from simulation.cluster import CONTROLLER, Cluster, tp
from simulation.process import Process

ORDERS = tp("orders")
STANDBY = BrokerId(2000)
MINUTE_MS = 60_000


def holder(cluster: Cluster) -> int | None:
    data = cluster.data(paths.CONTROLLER)
    return None if data is None else codecs.decode_controller(data)


def hindrances(process: Process) -> set[Hindrance]:
    return {one for one in Hindrance if process.metric("kontroller_leaves_role_alone", reason=one.value)}


def read_log(cluster: Cluster, event: str) -> list[str]:
    return [str(line.get("hindrance")) for line in cluster.logs if line["event"] == event]


def poison(cluster: Cluster) -> None:
    """Make every election in the topic `orders` raise an unexpected error."""
    cluster.surprises_expected = True

    def refuse(ops: Sequence[WriteOp]) -> None:
        if any(op.path.startswith(f"{paths.TOPICS}/orders/") for op in ops):
            raise ZkError("poison")

    cluster.zk.interventions.append(refuse)


def let_kafka_fill_in(cluster: Cluster, number: int) -> None:
    """Let a broker take the role whenever it is free, as Kafka's brokers do."""

    def fill_in() -> None:
        if not cluster.exists(paths.CONTROLLER):
            cluster.make_kafka_controller(number)

    def look() -> None:
        asyncio.get_running_loop().call_soon(fill_in)

    cluster.zk.observers.append(look)


# Terms that fail


async def test_a_kafka_controller_keeps_the_role_when_every_takeover_fails(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2)
    cluster.create_topic("orders", [1, 2])
    cluster.make_kafka_controller(1)
    poison(cluster)
    let_kafka_fill_in(cluster, 1)
    process = cluster.start_controller()
    await cluster.settle(passing_ms=60 * MINUTE_MS)
    assert process.terms == 5 + 3, "five within half a minute, and then one each quarter of an hour"
    assert holder(cluster) == 1
    assert hindrances(process) == {Hindrance.FAILED_TERMS}
    assert process.controller.check_readiness().reason == Hindrance.FAILED_TERMS.explanation
    assert "failed_terms" in read_log(cluster, "not standing for the role")


async def test_the_role_that_nobody_has_is_taken_ever_more_rarely_when_every_takeover_fails(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2)
    cluster.create_topic("orders", [1, 2])
    poison(cluster)
    process = cluster.start_controller()
    await cluster.settle(passing_ms=60 * MINUTE_MS)
    assert 10 <= process.terms <= 13
    assert holder(cluster) is None, "it is left to whoever comes"


async def test_what_made_takeovers_fail_is_gone_and_the_role_is_taken_and_kept(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2)
    cluster.create_topic("orders", [1, 2])
    poison(cluster)
    let_kafka_fill_in(cluster, 1)
    process = cluster.start_controller()
    await cluster.settle(passing_ms=5 * MINUTE_MS)
    cluster.zk.interventions.clear()
    await cluster.settle(passing_ms=15 * MINUTE_MS)
    assert process.is_active
    assert (hindrances(process), process.controller.check_readiness().is_ready) == (set(), True)
    assert cluster.leadership(ORDERS) == (1, [1, 2])


async def test_a_good_term_forgives_those_that_failed_before(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2)
    cluster.create_topic("orders", [1, 2])
    process = await cluster.serve()
    cluster.surprises_expected = True
    for number in range(10):
        await cluster.settle(passing_ms=11 * MINUTE_MS)
        process.life.errors.append(ZkError("once in a while"))
        cluster.create_topic(f"new-{number}", [1])
        await cluster.settle(passing_ms=2500)
        assert process.is_active, "the first wait is two seconds"
    assert process.terms == 11


# Brokers out of reach


def read_unsupported(cluster: Cluster) -> tuple[BrokerId, ...]:
    """Return the unsupported brokers that the controller reports about itself."""
    data = cluster.data(paths.process(CONTROLLER))
    assert data is not None
    return codecs.decode_process("", data).unsupported_brokers


async def test_the_role_is_taken_only_where_a_majority_of_the_brokers_can_be_reached(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2, 3, 4)
    cluster.create_topic("orders", [1, 2, 3])
    cluster.make_kafka_controller(1)
    for number in (2, 3):
        cluster.broker(number).cut_off()
    process = cluster.start_controller()
    await cluster.settle(passing_ms=10 * MINUTE_MS)
    assert (process.terms, holder(cluster)) == (0, 1)
    assert hindrances(process) == {Hindrance.BROKERS_OUT_OF_REACH}
    readiness = process.controller.check_readiness().make_json()
    assert readiness["ready"] is False
    assert readiness["reachable_brokers"] == [1, 4]
    assert readiness["unreachable_brokers"] == {2: "broker 2 cannot be reached", 3: "broker 3 cannot be reached"}
    cluster.broker(2).reconnect()
    cluster.broker(3).hang()
    await cluster.settle(passing_ms=20_000)
    assert (process.is_active, holder(cluster)) == (True, CONTROLLER)
    assert process.controller.check_readiness().is_ready
    assert process.metric("kontroller_reachable_brokers") == 3
    cluster.broker(3).resume()


async def test_a_broker_with_the_controller_s_id_is_counted_and_disturbs_no_other(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2)
    process = cluster.start_controller()
    await cluster.settle(passing_ms=20_000)
    assert process.metric("kontroller_own_id_taken") == 0
    cluster.start_broker(CONTROLLER)
    await cluster.settle(passing_ms=20_000)
    assert (process.is_active, process.metric("kontroller_own_id_taken")) == (True, 1)
    assert process.metric("kontroller_reachable_brokers") == 2
    cluster.create_topic("orders", [1, 2])
    await cluster.settle()
    assert cluster.leadership(tp("orders", 0)) == (1, [1, 2])
    cluster.kill_broker(CONTROLLER)
    await cluster.settle(passing_ms=20_000)
    assert process.metric("kontroller_own_id_taken") == 0


async def test_a_broker_that_cannot_be_led_for_its_release_is_named_counted_and_disturbs_no_other(
    cluster: Cluster,
) -> None:
    cluster.start_brokers(1, 2, 3)
    cluster.broker(2).is_supported = False
    process = cluster.start_controller()
    await cluster.settle(passing_ms=20_000)
    assert process.is_active
    assert process.controller.check_readiness().make_json()["unreachable_brokers"] == {
        2: "broker 2 is of another release"
    }
    assert process.metric("kontroller_unsupported_brokers") == 1
    assert read_unsupported(cluster) == (2,)
    cluster.create_topic("orders", [1, 3])
    await cluster.settle()
    assert cluster.leadership(tp("orders", 0)) == (1, [1, 3])
    cluster.broker(2).is_supported = True
    await cluster.settle(passing_ms=20_000)
    assert process.metric("kontroller_unsupported_brokers") == 0
    assert read_unsupported(cluster) == ()


async def test_the_role_of_a_cluster_without_brokers_is_taken(cluster: Cluster) -> None:
    process = await cluster.serve()
    assert process.controller.check_readiness().is_ready
    cluster.start_brokers(1)
    await cluster.settle()
    assert process.controller.check_readiness().is_ready


async def test_an_unreadable_registration_is_not_counted_among_the_brokers(cluster: Cluster) -> None:
    cluster.start_brokers(1)
    for number in (2, 3, 4):
        cluster.put(paths.broker(BrokerId(number)), b"{}")
    await cluster.serve()


async def test_the_role_is_given_back_when_no_broker_is_within_reach_and_taken_again_later(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2, 3)
    process = await cluster.serve()
    let_kafka_fill_in(cluster, 1)
    for number in (1, 2, 3):
        cluster.broker(number).cut_off()
    await cluster.settle(passing_ms=25_000)
    assert process.is_active, "it may be over in a moment"
    assert not process.controller.check_readiness().is_ready
    await cluster.settle(passing_ms=15_000)
    assert (process.is_active, holder(cluster)) == (False, 1)
    for number in (1, 2, 3):
        cluster.broker(number).reconnect()
    await cluster.settle(passing_ms=15_000)
    assert (process.is_active, process.terms) == (True, 2)
    assert_sound(cluster)


async def test_one_broker_within_reach_is_enough_to_keep_the_role(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2, 3)
    process = await cluster.serve()
    for number in (1, 2):
        cluster.broker(number).cut_off()
    await cluster.settle(passing_ms=10 * MINUTE_MS)
    assert (process.is_active, process.terms) == (True, 1)


async def test_a_look_at_the_brokers_that_fails_is_not_the_last(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2)
    process = await cluster.serve()
    await cluster.settle(passing_ms=1000)
    process.life.errors.append(ZkError("nobody knows this one"))
    await cluster.settle(passing_ms=6000)
    assert process.life.errors == []
    cluster.surprises_expected = True
    cluster.broker(1).cut_off()
    await cluster.settle(passing_ms=6000)
    assert (process.terms, process.controller.check_readiness().is_ready) == (1, False)
    cluster.broker(1).reconnect()


# A migration to KRaft


async def test_the_role_is_never_taken_from_a_kraft_controller(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2)
    kraft = b'{"version":2,"brokerid":3000,"timestamp":"1","kraftControllerEpoch":0}'
    cluster.put(paths.CONTROLLER, kraft)
    process = cluster.start_controller()
    await cluster.settle(passing_ms=10 * MINUTE_MS)
    assert (process.terms, cluster.data(paths.CONTROLLER)) == (0, kraft)
    assert hindrances(process) == {Hindrance.KRAFT_MIGRATION}
    assert read_log(cluster, "not standing for the role") == ["kraft_migration"]


# Processes of one id


async def test_a_second_living_process_of_one_id_ends_with_an_error_that_names_the_first(cluster: Cluster) -> None:
    cluster.start_brokers(1)
    first = await cluster.serve()
    second = cluster.start_controller(CONTROLLER)
    with pytest.raises(IdInUse, match="id 1000 and is alive, on this machine"):
        await cluster.settle()
    cluster.processes.remove(second)
    await cluster.settle()
    assert (first.is_active, first.terms, second.terms) == (True, 1, 0)


async def test_of_two_processes_of_one_id_that_start_at_once_one_is_left(cluster: Cluster) -> None:
    cluster.start_brokers(1)
    first, second = cluster.start_controller(CONTROLLER), cluster.start_controller(CONTROLLER)
    with pytest.raises(IdInUse):
        await cluster.settle()
    assert sorted([first.terms, second.terms]) == [0, 1]
    cluster.processes = [process for process in cluster.processes if not process.running.done()]
    assert len(cluster.processes) == 1


async def test_a_killed_process_is_replaced_within_seconds_though_its_session_lives(cluster: Cluster) -> None:
    cluster.start_brokers(1)
    first = await cluster.serve()
    await first.kill(session_ends=False)
    cluster.remove(paths.QUESTIONS)
    second = cluster.start_controller(CONTROLLER)
    await cluster.settle(passing_ms=1500)
    assert second.is_active
    await first.end_session()
    await cluster.settle()
    assert (second.is_active, second.terms) == (True, 1)


async def test_whoever_took_the_place_of_a_killed_process_in_this_moment_is_not_replaced(cluster: Cluster) -> None:
    """It has not seen the question that was put to the dead one, and so has not answered it."""
    cluster.start_brokers(1)
    killed = await cluster.serve()
    await killed.kill(session_ends=False)
    sign, other = paths.process(CONTROLLER), cluster.zk.new_session_id()
    create = Create(path=sign, data=cluster.data(sign) or b"", mode=CreateMode.EPHEMERAL)

    def be_faster(ops: Sequence[WriteOp]) -> None:
        if any(isinstance(op, Delete) and op.path == sign for op in ops):
            cluster.zk.interventions.clear()
            cluster.write(SetData(path=paths.PROCESSES, data=b""), Delete(path=sign), create, owner=other)

    cluster.zk.interventions.append(be_faster)
    late = cluster.start_controller(CONTROLLER)
    await cluster.settle(passing_ms=ANSWER_MS * 1.5)
    assert not cluster.zk.interventions
    node = cluster.zk.tree.read(sign)
    assert node is not None
    assert (node.ephemeral_owner, late.terms) == (other, 0)


async def test_a_process_that_slept_while_another_was_started_in_its_place_ends(cluster: Cluster) -> None:
    cluster.start_brokers(1)
    first = await cluster.serve()
    sign = paths.process(CONTROLLER)
    cluster.zk.disconnect(first.session)
    cluster.zk.end(first.session.session_id)
    second = await cluster.serve()
    assert cluster.exists(sign)
    cluster.zk.reconnect(first.session)
    with pytest.raises(IdInUse):
        await cluster.settle()
    cluster.processes.remove(first)
    await cluster.settle()
    assert (second.is_active, second.terms) == (True, 1)


async def test_a_sign_of_life_that_somebody_deletes_is_there_again(cluster: Cluster) -> None:
    cluster.start_brokers(1)
    process = await cluster.serve()
    cluster.remove(paths.KONTROLLER)
    await cluster.settle()
    assert cluster.exists(paths.process(CONTROLLER))
    assert process.terms == 1


@pytest.mark.parametrize("data", [b"", b"{garbled", b'{"version":7}'])
async def test_what_a_person_left_where_signs_of_life_are_hinders_nobody(cluster: Cluster, data: bytes) -> None:
    cluster.start_brokers(1)
    for path in (paths.KONTROLLER, paths.PROCESSES, paths.QUESTIONS):
        cluster.write(Create(path=path))
    for path in (paths.process(CONTROLLER), paths.process(STANDBY), f"{paths.PROCESSES}/nobody"):
        cluster.write(Create(path=path, data=data), Create(path=f"{path}/child"))
    for name in ("1000,", "1000,x", "nonsense"):
        cluster.write(Create(path=f"{paths.QUESTIONS}/{name}", data=data))
    cluster.settings = replace(cluster.settings, hot_standby=False)
    process = await cluster.serve()
    await cluster.settle(passing_ms=MINUTE_MS)
    assert (process.is_active, process.terms) == (True, 1)
    cluster.zk.expire(process.session)
    await cluster.settle()
    assert (process.is_active, process.terms) == (True, 2)


# A standby that is hot


async def test_a_killed_process_that_is_restarted_leaves_the_role_to_the_one_that_is_hot(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2)
    first = await cluster.serve()
    cluster.create_topic("orders", [1, 2])
    standby = cluster.start_controller(STANDBY)
    await cluster.settle()
    await first.kill(session_ends=False)
    cluster.kill_broker(1)
    cluster.settings = replace(cluster.settings, hot_standby=False)
    restarted = cluster.start_controller(CONTROLLER)
    await cluster.settle(passing_ms=1500)
    assert (restarted.terms, standby.is_active) == (0, True)
    assert cluster.leadership(ORDERS) == (2, [2])
    await first.end_session()
    await cluster.settle()
    assert_sound(cluster)


async def test_a_hot_standby_that_does_not_take_the_role_is_waited_for_only_for_a_moment(cluster: Cluster) -> None:
    cluster.start_brokers(1)
    sign = codecs.encode_process(codecs.ProcessZnode(whereabouts="nowhere", is_hot=True))
    for path in (paths.KONTROLLER, paths.PROCESSES):
        cluster.write(Create(path=path))
    cluster.write(
        Create(path=paths.process(STANDBY), data=sign, mode=CreateMode.EPHEMERAL), owner=cluster.zk.new_session_id()
    )
    cluster.settings = replace(cluster.settings, hot_standby=False)
    process = cluster.start_controller()
    await cluster.settle(passing_ms=2500)
    assert (process.terms, hindrances(process)) == (0, {Hindrance.HOT_STANDBY})
    await cluster.settle(passing_ms=YIELD_MS)
    assert (process.is_active, hindrances(process)) == (True, set())
