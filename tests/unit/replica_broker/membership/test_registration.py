"""The registration of a broker, and the older registrations that it waits for."""

import asyncio

import orjson
import pytest

from controller_core.model.ids import BrokerId
from controller_core.zk import codecs, paths
from controller_core.zk.session import Create, CreateMode
from replica_broker.membership import registration as module
from replica_broker.membership.node import UNREGISTERED
from replica_broker.membership.registration import (
    BrokerIdInUse,
    Registration,
    encode_own_registration,
    read_other_listeners,
    read_stock_brokers,
)
from tests.unit.replica_broker.membership.clusters import OWN, Joining, broker, endpoint

PATH = paths.broker(OWN)
DEADLINE_S = 10


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_S", 0.001)


def registration(joining: Joining) -> Registration:
    return Registration(joining.zk, joining.node, broker(), session_timeout_ms=6_000)


async def test_the_epoch_is_the_czxid_of_the_registration(joining: Joining) -> None:
    await registration(joining).register()
    znode = await joining.read(PATH)
    assert znode is not None
    assert joining.node.epoch == znode.czxid
    assert znode.ephemeral_owner == joining.zk.session_id
    assert codecs.decode_broker(OWN, znode).endpoints == broker().endpoints


async def test_an_answer_that_was_lost_is_looked_up(joining: Joining) -> None:
    joining.zookeeper.lose_next_response(joining.zk)
    async with asyncio.timeout(DEADLINE_S):
        await registration(joining).register()
    assert joining.node.epoch != UNREGISTERED


async def test_an_earlier_life_is_waited_for(joining: Joining) -> None:
    earlier = joining.zookeeper.session()
    await Registration(earlier, joining.node, broker(), session_timeout_ms=6_000).register()
    former = joining.node.epoch
    registering = asyncio.create_task(registration(joining).register())
    await asyncio.sleep(0.01)
    assert not registering.done()
    joining.zookeeper.expire(earlier)
    async with asyncio.timeout(DEADLINE_S):
        await registering
    assert joining.node.epoch > former


async def test_a_listener_more_or_less_makes_an_earlier_life_no_other_broker(joining: Joining) -> None:
    earlier = joining.zookeeper.session()
    with_another = broker(further=(endpoint("CLIENT", 9103),))
    await Registration(earlier, joining.node, with_another, session_timeout_ms=6_000).register()
    registering = asyncio.create_task(registration(joining).register())
    joining.zookeeper.expire(earlier)
    async with asyncio.timeout(DEADLINE_S):
        await registering


async def test_all_listeners_are_registered_with_their_protocols_as_a_stock_broker_does_it(joining: Joining) -> None:
    several = broker(further=(endpoint("CLIENT", 9103),))
    await Registration(joining.zk, joining.node, several, session_timeout_ms=6_000).register()
    znode = await joining.read(PATH)
    assert znode is not None
    said = orjson.loads(znode.data)
    assert said["endpoints"] == ["PLAINTEXT://here:9003", "CLIENT://here:9103"]
    assert said["listener_security_protocol_map"] == {"PLAINTEXT": "PLAINTEXT", "CLIENT": "PLAINTEXT"}
    assert (said["host"], said["port"]) == ("here", 9003)


async def test_which_listeners_the_others_have_is_read_from_their_registrations(joining: Joining) -> None:
    assert await read_other_listeners(joining.zk, OWN) == set()
    several = broker(further=(endpoint("CLIENT", 9103),))
    await Registration(joining.zk, joining.node, several, session_timeout_ms=6_000).register()
    unreadable = Create(path=paths.broker(BrokerId(8)), data=b"{}", mode=CreateMode.EPHEMERAL)
    await joining.zk.transact([unreadable])
    assert await read_other_listeners(joining.zk, OWN) == set()
    assert await read_other_listeners(joining.zk, BrokerId(9)) == {"PLAINTEXT", "CLIENT"}


async def test_another_broker_of_the_same_id_is_told_of_in_words(joining: Joining) -> None:
    other = joining.zookeeper.session()
    await Registration(other, joining.node, broker(port=9999), session_timeout_ms=6_000).register()
    with pytest.raises(BrokerIdInUse, match=r"another broker is registered as 3, at PLAINTEXT://here:9999"):
        await registration(joining).register()


async def test_a_lost_session_is_followed_by_a_registration_with_a_new_epoch(joining: Joining) -> None:
    registered = registration(joining)
    await registered.register()
    former = joining.node.epoch
    keeping = asyncio.create_task(registered.keep())
    try:
        await asyncio.sleep(0)
        joining.zookeeper.expire(joining.zk)
        async with asyncio.timeout(DEADLINE_S):
            while joining.node.epoch <= former:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.01)
        znode = await joining.read(PATH)
        assert znode is not None
        assert znode.czxid == joining.node.epoch
    finally:
        keeping.cancel()


async def test_stock_brokers_are_told_from_ours(joining: Joining) -> None:
    stock = codecs.encode_broker(broker(), timestamp_ms=0)
    await joining.zk.transact([Create(path=f"{paths.BROKER_IDS}/1", data=stock, mode=CreateMode.EPHEMERAL)])
    ours = encode_own_registration(broker(), timestamp_ms=0)
    await joining.zk.transact([Create(path=f"{paths.BROKER_IDS}/2", data=ours, mode=CreateMode.EPHEMERAL)])
    assert await read_stock_brokers(joining.zk) == [1]
