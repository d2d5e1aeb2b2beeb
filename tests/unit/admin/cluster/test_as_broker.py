"""Requests that every broker answers for itself: the controller has no groups, logs or transactions, and says so."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.alter_replica_log_dirs.v2.request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kio.schema.describe_producers.v0.request import DescribeProducersRequest, TopicRequest
from kio.schema.types import TopicName
from kio.static.primitive import i32
from structlog.testing import capture_logs

from controller_core.admin.cluster import as_broker
from controller_core.process.listening import ListenerAssembly
from controller_core.process.run import SERVED_APIS
from controller_core.wire.codecs.frames import decode_response, encode_request, read_request_head
from controller_core.wire.codecs.versions import Versions, empty
from controller_core.wire.listener.owned_api import NoAnswerNow
from controller_core.wire.messages import ErrorCode
from simulation.checks import simulate_cluster

GROUPS, LOG_DIRS, TRANSACTIONS = 16, 35, 66
EMPTY = {GROUPS: "groups", TRANSACTIONS: "transaction_states"}


@pytest.fixture
async def assembly() -> AsyncIterator[ListenerAssembly]:
    async with simulate_cluster() as cluster:
        cluster.start_brokers(1)
        process = await cluster.serve()
        yield ListenerAssembly(cluster.zk.session(), SERVED_APIS, lambda: process.controller.term, process.answer)


async def answer(assembly: ListenerAssembly, request: Any) -> Any:
    (api,) = (api for api in assembly.make_apis("PLAINTEXT") if api.key == request.__api_key__)
    content = encode_request(request, 1, "client")[4:]
    frame = await api.respond(read_request_head(content), content)
    assert isinstance(frame, bytes), "no broker is asked"
    return decode_response(load_response_schema(request.__api_key__, request.__version__), frame[4:])


def versions_of(key: int) -> Versions[Any]:
    return next(versions for versions in as_broker.ANSWERS if versions.key == key)


@pytest.mark.parametrize(
    ("key", "version"),
    [(key, version) for key in EMPTY for version in range(versions_of(key).min, versions_of(key).max + 1)],
)
async def test_it_has_no_groups_and_no_transactions(assembly: ListenerAssembly, key: int, version: int) -> None:
    answered = await answer(assembly, empty(load_request_schema(key, version)))
    assert getattr(answered, EMPTY[key]) == ()
    assert getattr(answered, "error_code", ErrorCode.none) is ErrorCode.none


@pytest.mark.parametrize("version", range(1, 5))
async def test_it_has_one_log_directory_with_nothing_in_it(assembly: ListenerAssembly, version: int) -> None:
    """None at all means to Java's admin client that it may not see them (KafkaAdminClient.describeLogDirs)."""
    (directory,) = (await answer(assembly, empty(load_request_schema(LOG_DIRS, version)))).results
    assert (directory.error_code, directory.topics) == (ErrorCode.none, ())


async def test_it_has_no_directory_that_a_replica_could_be_moved_to(assembly: ListenerAssembly) -> None:
    topic = AlterReplicaLogDirTopic(name=TopicName("orders"), partitions=(i32(0), i32(3)))
    request = AlterReplicaLogDirsRequest(dirs=(AlterReplicaLogDir(path="/data", topics=(topic,)),))
    (result,) = (await answer(assembly, request)).results
    assert result.topic_name == "orders"
    assert {entry.partition_index: entry.error_code for entry in result.partitions} == dict.fromkeys(
        (0, 3), ErrorCode.log_dir_not_found
    )


async def test_it_leads_no_partition_that_has_producers(assembly: ListenerAssembly) -> None:
    request = DescribeProducersRequest(topics=(TopicRequest(name=TopicName("orders"), partition_indexes=(i32(1),)),))
    (topic,) = (await answer(assembly, request)).topics
    (partition,) = topic.partitions
    assert (topic.name, partition.partition_index) == ("orders", 1)
    assert (partition.error_code, partition.active_producers) == (ErrorCode.not_leader_or_follower, ())


async def test_without_the_role_there_is_no_answer() -> None:
    async with simulate_cluster() as cluster:
        process = cluster.start_controller()
        idle = ListenerAssembly(cluster.zk.session(), SERVED_APIS, lambda: None, process.answer)
        with capture_logs(), pytest.raises(NoAnswerNow):
            await answer(idle, empty(load_request_schema(GROUPS, 5)))
