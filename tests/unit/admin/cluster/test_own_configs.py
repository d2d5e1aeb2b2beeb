"""The controller's own configuration: tools describe and alter it as they do with every broker that Metadata lists."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from kio.schema.alter_configs.v2 import request as replacing
from kio.schema.alter_configs.v2.request import AlterConfigsRequest
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
from controller_core.model.throttles import THROTTLE_SETTING, Move, Throttle
from controller_core.zk import codecs, paths
from controller_core.zk.session import ZkNode
from simulation.checks import simulate_cluster
from simulation.cluster import CONTROLLER, Cluster, tp

SET, DELETE, APPEND = 0, 1, 2
BROKER, TOPIC, LOGGERS = 4, 2, 8
UNCLEAN = "unclean.leader.election.enable"
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")


def alter(
    *changes: tuple[str, int, str | None], kind: int = BROKER, name: str = str(CONTROLLER), validate_only: bool = False
) -> IncrementalAlterConfigsRequest:
    configs = tuple(AlterableConfig(name=key, config_operation=i8(op), value=value) for key, op, value in changes)
    resource = AlterConfigsResource(resource_type=i8(kind), resource_name=name, configs=configs)
    return IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)


def replace_all(*values: tuple[str, str | None], kind: int = BROKER, times: int = 1) -> AlterConfigsRequest:
    configs = tuple(replacing.AlterableConfig(name=key, value=value) for key, value in values)
    resource = replacing.AlterConfigsResource(resource_type=i8(kind), resource_name=str(CONTROLLER), configs=configs)
    return AlterConfigsRequest(resources=(resource,) * times, validate_only=False)


def describe(*keys: str, kind: int = BROKER) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(
        resource_type=i8(kind), resource_name=str(CONTROLLER), configuration_keys=keys or None
    )
    return DescribeConfigsRequest(resources=(resource,))


async def code(cluster: Cluster, request: IncrementalAlterConfigsRequest | AlterConfigsRequest) -> ErrorCode:
    (result,) = (await cluster.request(request)).responses
    assert isinstance(result.error_code, ErrorCode)
    return result.error_code


def config(cluster: Cluster, broker: int = CONTROLLER) -> dict[str, str]:
    data = cluster.data(paths.broker_config(BrokerId(broker)))
    return codecs.decode_config(data) if data else {}


@pytest.fixture
async def served() -> AsyncIterator[Cluster]:
    async with simulate_cluster() as cluster:
        cluster.start_brokers(1, 2)
        await cluster.serve()
        yield cluster


async def test_throttles_that_are_not_there_are_removed(served: Cluster) -> None:
    assert await code(served, alter(*((rate, DELETE, None) for rate in RATES))) is ErrorCode.none
    assert config(served) == {}


async def test_rates_of_throttles_are_kept_for_tools_that_read_them_back(served: Cluster) -> None:
    assert await code(served, alter(*((rate, SET, "1000000") for rate in RATES))) is ErrorCode.none
    (described,) = (await served.request(describe(*RATES))).results
    entries = {entry.name: (entry.value, entry.config_source, entry.read_only) for entry in described.configs}
    assert entries == dict.fromkeys(RATES, ("1000000", 2, False))
    assert await code(served, alter(*((rate, DELETE, None) for rate in RATES))) is ErrorCode.none
    (described,) = (await served.request(describe(RATES[0]))).results
    assert described.configs == (), "like a broker's"


async def test_clients_that_only_replace_configurations_set_and_remove_rates(served: Cluster) -> None:
    assert await code(served, replace_all((RATES[0], "5"), (UNCLEAN, "false"))) is ErrorCode.none
    assert config(served) == {RATES[0]: "5", UNCLEAN: "false"}
    assert await code(served, replace_all()) is ErrorCode.none
    assert config(served) == {}


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (replace_all((RATES[0], "fast")), ErrorCode.invalid_config),
        (replace_all((RATES[0], None)), ErrorCode.invalid_request),
        (replace_all((RATES[0], "1"), (RATES[0], "2")), ErrorCode.invalid_request),
        (replace_all(("log.dirs", "/a")), ErrorCode.invalid_config),
        (replace_all((RATES[0], "1"), kind=TOPIC), ErrorCode.invalid_request),
        (replace_all(("kafka", "DEBUG"), kind=LOGGERS), ErrorCode.invalid_config),
        (replace_all((RATES[0], "1"), times=2), ErrorCode.invalid_request),
    ],
)
async def test_an_impossible_replacement_is_refused(
    served: Cluster, request_: AlterConfigsRequest, expected: ErrorCode
) -> None:
    results = (await served.request(request_)).responses
    assert {result.error_code for result in results} == {expected}
    assert config(served) == {}


async def test_it_has_no_loggers_of_kafka(served: Cluster) -> None:
    (described,) = (await served.request(describe(kind=LOGGERS))).results
    assert (described.error_code, described.configs) == (ErrorCode.none, ())
    (altered,) = (await served.request(alter(("kafka", SET, "DEBUG"), kind=LOGGERS))).responses
    assert altered.error_code is ErrorCode.invalid_config
    assert altered.error_message == "1000 is the controller, which has no loggers of Kafka: set its --log-level"


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
    (described,) = (await served.request(describe(UNCLEAN))).results
    (entry,) = described.configs
    assert (entry.name, entry.value, entry.config_source) == (UNCLEAN, "true", 2)
    assert await code(served, alter((UNCLEAN, DELETE, None))) is ErrorCode.none
    assert config(served) == {}


async def test_the_settings_that_hold_are_described_with_their_source(served: Cluster) -> None:
    (described,) = (await served.request(describe(UNCLEAN))).results
    assert [(entry.value, entry.config_source) for entry in described.configs] == [("false", 4)]
    asked = replace(describe("num.partitions"), include_synonyms=True)
    (entry,) = (await served.request(asked)).results[0].configs
    assert [(each.value, each.source) for each in entry.synonyms] == [("1", 4)]
    (nothing,) = (await served.request(describe("log.dirs"))).results
    assert nothing.configs == ()


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (alter((UNCLEAN, SET, "maybe")), ErrorCode.invalid_config),
        (alter((UNCLEAN, SET, None)), ErrorCode.invalid_request),
        (alter((UNCLEAN, APPEND, "true")), ErrorCode.invalid_request),
        (alter((UNCLEAN, SET, "true"), (UNCLEAN, DELETE, None)), ErrorCode.invalid_request),
        (alter((RATES[0], SET, "-1")), ErrorCode.invalid_config),
        (alter((RATES[0], SET, str(2**63))), ErrorCode.invalid_config),
        (alter(("log.dirs", SET, "/a")), ErrorCode.invalid_config),
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
    assert is_about(describe(kind=LOGGERS), CONTROLLER)
    assert is_about(replace_all(), CONTROLLER)
    assert not is_about(describe(), BrokerId(1))
    assert not is_about(alter((UNCLEAN, SET, "true"), kind=TOPIC), CONTROLLER)


async def test_it_is_read_once_however_often_a_request_asks_for_it(
    served: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    (resource,) = describe(UNCLEAN).resources
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


# Throttles of moves that the controller owns

MINE = f"{THROTTLE_SETTING}.plan-1"
MOVE = Move(origin=(BrokerId(1),), target=(BrokerId(2),))
THROTTLE = codecs.encode_throttle(Throttle(bytes_per_second=1000, moves={tp("orders"): MOVE})).decode()


async def owners(cluster: Cluster) -> str | None:
    (described,) = (await cluster.request(describe(THROTTLE_SETTING))).results
    (entry,) = described.configs
    assert isinstance(entry.value, str)
    return entry.value


async def test_a_client_gives_the_controller_a_throttle_that_also_dead_brokers_get_and_that_ends_with_its_move(
    served: Cluster,
) -> None:
    served.create_topic("orders", [1, 2])
    served.kill_broker(1)
    await served.settle()
    assert await code(served, alter((MINE, SET, THROTTLE))) is ErrorCode.none
    assert await owners(served) == "plan-1"
    rates = dict.fromkeys(("leader.replication.throttled.rate", "follower.replication.throttled.rate"), "1000")
    for broker in (1, 2):
        assert config(served, broker) == rates
    assert config(served) == {}, "it is no setting of the controller as a node"
    served.request_reassignment({tp("orders"): [2]})
    await served.settle()
    assert await owners(served) == ""
    assert config(served, 1) == {}


async def test_a_client_ends_a_throttle_whose_move_never_began(served: Cluster) -> None:
    served.create_topic("orders", [1, 2])
    await served.settle()
    assert await code(served, alter((MINE, SET, THROTTLE), validate_only=True)) is ErrorCode.none
    assert await owners(served) == ""
    await code(served, alter((MINE, SET, THROTTLE)))
    for _ in range(2):
        assert await code(served, alter((MINE, DELETE, None))) is ErrorCode.none
        assert await owners(served) == ""


@pytest.mark.parametrize(
    ("name", "value"), [(MINE, "{}"), (MINE, "1000"), (MINE, '{"version": 99}'), (THROTTLE_SETTING, THROTTLE)]
)
async def test_what_is_no_throttle_is_refused(served: Cluster, name: str, value: str) -> None:
    assert await code(served, alter((name, SET, value))) is ErrorCode.invalid_config
    assert await owners(served) == ""
