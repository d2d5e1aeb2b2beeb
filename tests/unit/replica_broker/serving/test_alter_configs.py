"""Configurations that are altered through a broker: the writes, the notifications, and the refusals."""

import pytest
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.static.primitive import i8

from controller_core.wire.messages import ErrorCode
from controller_core.zk import codecs, paths
from controller_core.zk.session import Create
from replica_broker.membership.startup import ensure_parents
from replica_broker.serving.configs.alter_configs import on_alter_configs
from replica_broker.serving.configs.altering import APPEND, DELETE, SET, SUBTRACT
from simulation.zookeeper import SimulatedZooKeeper
from simulation.zookeeper_session import SimulatedSession
from tests.unit.replica_broker.serving.told import node, state, topic

TOPIC, BROKER = 2, 4
PATH = paths.topic_config("orders")  # type: ignore[arg-type]


@pytest.fixture
async def zk() -> SimulatedSession:
    session = SimulatedZooKeeper().session()
    await ensure_parents(session)
    await session.transact([Create(path=PATH, data=codecs.encode_config({"retention.ms": "5"}))])
    return session


async def alter(
    zk: SimulatedSession,
    *changes: tuple[str, int, str | None],
    kind: int = TOPIC,
    name: str = "orders",
    validate_only: bool = False,
) -> tuple[ErrorCode, str | None]:
    configs = tuple(AlterableConfig(name=key, config_operation=i8(op), value=value) for key, op, value in changes)
    resource = AlterConfigsResource(resource_type=i8(kind), resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)
    (answer,) = (await on_alter_configs(node(topic("orders", [state(0, 3)])), zk, request)).responses
    return answer.error_code, answer.error_message


async def config(zk: SimulatedSession, path: str = PATH) -> dict[str, str]:
    (znode,) = await zk.read_many([path])
    return codecs.decode_config(znode.data) if znode else {}


async def read_told(zk: SimulatedSession) -> list[str]:
    (names,) = await zk.children_many([paths.CONFIG_CHANGES])
    nodes = await zk.read_many([paths.config_change(name) for name in names or ()])
    return [codecs.decode_config_change(znode.data) for znode in nodes if znode is not None]


async def test_a_topic_is_altered_as_a_whole_and_all_brokers_are_told(zk: SimulatedSession) -> None:
    answer = await alter(zk, ("segment.bytes", SET, "1000"), ("retention.ms", DELETE, None))
    assert answer == (ErrorCode.none, None)
    assert await config(zk) == {"segment.bytes": "1000"}
    assert await read_told(zk) == ["topics/orders"]


async def test_lists_are_lengthened_and_shortened(zk: SimulatedSession) -> None:
    await alter(zk, ("cleanup.policy", APPEND, "compact"))
    assert (await config(zk))["cleanup.policy"] == "delete,compact"
    await alter(zk, ("cleanup.policy", SUBTRACT, "delete"))
    assert (await config(zk))["cleanup.policy"] == "compact"


@pytest.mark.parametrize(
    "changes",
    [
        [("segment.bytes", SET, "many")],
        [("unheard.of", SET, "1")],
        [("retention.ms", SET, "6"), ("segment.bytes", SET, "-1")],
        [("retention.ms", APPEND, "6")],
        [("retention.ms", SET, None)],
        [("retention.ms", SET, "6"), ("retention.ms", SET, "7")],
    ],
)
async def test_nothing_of_an_impossible_alteration_is_done(
    zk: SimulatedSession, changes: list[tuple[str, int, str | None]]
) -> None:
    error_code, why = await alter(zk, *changes)
    assert error_code in (ErrorCode.invalid_config, ErrorCode.invalid_request)
    assert why
    assert await config(zk) == {"retention.ms": "5"}
    assert await read_told(zk) == []


async def test_a_trial_changes_nothing(zk: SimulatedSession) -> None:
    assert await alter(zk, ("retention.ms", SET, "6"), validate_only=True) == (ErrorCode.none, None)
    assert await config(zk) == {"retention.ms": "5"}


async def test_a_broker_of_ours_takes_its_own_throttles_and_nothing_else(zk: SimulatedSession) -> None:
    throttle = ("leader.replication.throttled.rate", SET, "1000")
    assert await alter(zk, throttle, kind=BROKER, name="3") == (ErrorCode.none, None)
    assert await config(zk, paths.broker_config(node().id)) == {"leader.replication.throttled.rate": "1000"}
    assert (await alter(zk, throttle, kind=BROKER, name="1"))[0] is ErrorCode.invalid_request
    assert (await alter(zk, ("num.io.threads", SET, "9"), kind=BROKER, name="3"))[0] is ErrorCode.invalid_config
    gone = ("leader.replication.throttled.rate", DELETE, None)
    assert await alter(zk, gone, kind=BROKER, name="3") == (ErrorCode.none, None)
    assert await config(zk, paths.broker_config(node().id)) == {}


async def test_a_topic_that_is_not_there_is_not_altered(zk: SimulatedSession) -> None:
    assert (await alter(zk, ("retention.ms", SET, "6"), name="none"))[0] is ErrorCode.unknown_topic_or_partition
