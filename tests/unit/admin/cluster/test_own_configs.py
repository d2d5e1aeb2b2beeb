"""The controller's own configuration: tools describe and alter it as they do with every broker that Metadata lists."""

from collections.abc import AsyncIterator

import pytest
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.static.primitive import i8

from controller_core.admin.cluster.own_configs import is_about
from controller_core.model.ids import BrokerId
from controller_core.zk import codecs, paths
from controller_core.zk.session import ZkNode
from simulation.checks import simulate_cluster
from simulation.cluster import CONTROLLER, Cluster, tp

SET, DELETE, APPEND = 0, 1, 2
BROKER, TOPIC = 4, 2
UNCLEAN = "unclean.leader.election.enable"


def alter(
    *changes: tuple[str, int, str | None], kind: int = BROKER, name: str = str(CONTROLLER), validate_only: bool = False
) -> IncrementalAlterConfigsRequest:
    configs = tuple(AlterableConfig(name=key, config_operation=i8(op), value=value) for key, op, value in changes)
    resource = AlterConfigsResource(resource_type=i8(kind), resource_name=name, configs=configs)
    return IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)


def describe(*keys: str) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(
        resource_type=i8(BROKER), resource_name=str(CONTROLLER), configuration_keys=keys or None
    )
    return DescribeConfigsRequest(resources=(resource,))


async def code(cluster: Cluster, request: IncrementalAlterConfigsRequest) -> ErrorCode:
    (result,) = (await cluster.request(request)).responses
    assert isinstance(result.error_code, ErrorCode)
    return result.error_code


def config(cluster: Cluster) -> dict[str, str]:
    data = cluster.data(paths.broker_config(CONTROLLER))
    return codecs.decode_config(data) if data else {}


@pytest.fixture
async def served() -> AsyncIterator[Cluster]:
    async with simulate_cluster() as cluster:
        cluster.start_brokers(1, 2)
        await cluster.serve()
        yield cluster


async def test_throttles_that_are_not_there_are_removed(served: Cluster) -> None:
    rates = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
    assert await code(served, alter(*((rate, DELETE, None) for rate in rates))) is ErrorCode.none
    assert config(served) == {}


async def test_unclean_elections_are_allowed_by_default_and_a_waiting_partition_gets_its_leader(
    served: Cluster,
) -> None:
    served.create_topic("orders", [1, 2])
    await served.settle()
    served.kill_broker(2)
    await served.settle()
    served.kill_broker(1)
    await served.settle()
    served.start_broker(2)
    await served.settle()
    assert served.leadership(tp("orders")) == (-1, [1])
    assert await code(served, alter((UNCLEAN, SET, "true"))) is ErrorCode.none
    assert served.leadership(tp("orders")) == (2, [2])
    (described,) = (await served.request(describe())).results
    (entry,) = described.configs
    assert (entry.name, entry.value, entry.config_source) == (UNCLEAN, "true", 2)
    assert await code(served, alter((UNCLEAN, DELETE, None))) is ErrorCode.none
    assert config(served) == {}


async def test_the_default_of_the_process_is_described(served: Cluster) -> None:
    (described,) = (await served.request(describe(UNCLEAN))).results
    assert [(entry.value, entry.config_source) for entry in described.configs] == [("false", 4)]
    (nothing,) = (await served.request(describe("log.dirs"))).results
    assert nothing.configs == ()


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (alter((UNCLEAN, SET, "maybe")), ErrorCode.invalid_config),
        (alter((UNCLEAN, SET, None)), ErrorCode.invalid_request),
        (alter((UNCLEAN, APPEND, "true")), ErrorCode.invalid_request),
        (alter((UNCLEAN, SET, "true"), (UNCLEAN, DELETE, None)), ErrorCode.invalid_request),
        (alter(("leader.replication.throttled.rate", SET, "5")), ErrorCode.invalid_config),
        (alter((UNCLEAN, SET, "true"), name="1"), ErrorCode.invalid_request),
        (alter((UNCLEAN, SET, "true"), kind=TOPIC), ErrorCode.invalid_request),
    ],
)
async def test_what_cannot_be_is_refused_and_changes_nothing(
    served: Cluster, request_: IncrementalAlterConfigsRequest, expected: ErrorCode
) -> None:
    assert await code(served, request_) is expected
    assert config(served) == {}


async def test_validation_alone_changes_nothing(served: Cluster) -> None:
    missing = (paths.CONFIG_CHANGES, paths.BROKER_CONFIGS)
    for path in missing:
        served.remove(path)
    assert await code(served, alter((UNCLEAN, SET, "true"), validate_only=True)) is ErrorCode.none
    assert not any(served.exists(path) for path in missing)


async def test_an_unreadable_configuration_is_reported(served: Cluster) -> None:
    served.put(paths.broker_config(CONTROLLER), b"{not json")
    assert await code(served, alter((UNCLEAN, SET, "true"))) is ErrorCode.unknown_server_error
    (described,) = (await served.request(describe())).results
    assert described.error_code is ErrorCode.unknown_server_error


def test_what_is_not_about_the_controller_is_a_brokers_business() -> None:
    assert is_about(describe(), CONTROLLER)
    assert not is_about(describe(), BrokerId(1))
    assert not is_about(alter((UNCLEAN, SET, "true"), kind=TOPIC), CONTROLLER)


async def test_it_is_read_once_however_often_a_request_asks_for_it(
    served: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    (resource,) = describe().resources
    reads: list[str] = []
    read = served.zk.tree.read

    def count_reads(path: str) -> ZkNode | None:
        reads.extend([path] if path == paths.broker_config(CONTROLLER) else [])
        return read(path)

    monkeypatch.setattr(served.zk.tree, "read", count_reads)
    results = (await served.request(DescribeConfigsRequest(resources=(resource,) * 1000))).results
    assert [[entry.value for entry in result.configs] for result in results] == [["false"]] * 1000
    assert len(reads) == 1


async def test_a_change_of_it_that_is_there_twice_is_refused_as_a_broker_does_it(served: Cluster) -> None:
    (resource,) = alter((UNCLEAN, SET, "true")).resources
    twice = IncrementalAlterConfigsRequest(resources=(resource,) * 2, validate_only=False)
    results = (await served.request(twice)).responses
    assert [result.error_code for result in results] == [ErrorCode.invalid_request] * 2
    assert config(served) == {}
