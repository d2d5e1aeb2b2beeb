"""The servers that a call asks: a hanging server does not block the others, and no server is asked in a version that it
lacks."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from kio.index import load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v11 import MetadataResponse

from controller_core.client.admin_client import AdminClient
from controller_core.client.errors import NotAdmittedError, OutcomeUnknown, Unreachable, Unsupported
from controller_core.client.features import FeatureUpdate, UpdateType
from controller_core.client.transport.request_client import RequestClient
from controller_core.wire.requests.metadata import NO_TOPICS
from tests.unit.client.scripted_servers.every_call import every_call
from tests.unit.client.scripted_servers.scripted import (
    CREATE_TOPICS,
    DESCRIBE_CONFIGS,
    DESCRIBE_SCRAM,
    METADATA,
    UPDATE_FEATURES,
    Answer,
    ScriptedBroker,
    ScriptedCluster,
    fill_response,
    speaks,
    start_cluster,
)

KAFKA_2_8 = {
    3: (0, 11), 18: (0, 3), 19: (0, 7), 20: (0, 6), 32: (0, 4), 35: (0, 2), 37: (0, 3), 43: (0, 2), 44: (0, 1), 45: (0, 0),
    46: (0, 0), 50: (0, 0), 51: (0, 0), 57: (0, 0),
}  # fmt: skip
"""The versions that Kafka 2.8 offers of the APIs that the client uses."""
KAFKA_4 = {
    3: (0, 13), 18: (0, 4), 19: (2, 7), 20: (1, 6), 32: (1, 4), 35: (1, 4), 37: (0, 3), 43: (0, 2), 44: (0, 1), 45: (0, 1),
    46: (0, 0), 50: (0, 0), 51: (0, 0), 57: (0, 2),
}  # fmt: skip


@pytest.fixture
async def cluster() -> AsyncIterator[ScriptedCluster]:
    """The first of three servers is the controller."""
    async with start_cluster() as started:
        started.topics = {"orders": [[1, 2]]}
        yield started


async def test_many_servers_that_take_their_time_are_no_trouble() -> None:
    async with start_cluster(range(1, 101)) as cluster:
        for broker in cluster.brokers.values():
            broker.delay_s = 0.15
        admin = cluster.client(2)
        for _ in range(3):
            assert len((await admin.describe_cluster(timeout_ms=3_000)).brokers) == 100


async def test_a_server_that_hangs_costs_its_time_once(cluster: ScriptedCluster) -> None:
    """A second for each of six calls, if each began with it."""
    cluster[3].hangs = True
    admin = cluster.client(3, 2)
    await admin.list_topics(timeout_ms=3_000)
    started = asyncio.get_running_loop().time()
    for _ in range(3):
        await admin.describe_features()
        await admin.list_topics()
    assert asyncio.get_running_loop().time() - started < 5


async def test_what_is_wrong_with_one_server_ends_no_call_that_another_can_answer(cluster: ScriptedCluster) -> None:
    async def answer_nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read(100)
        writer.close()

    async with await asyncio.start_server(answer_nonsense, "127.0.0.1", 0) as nonsense:
        host, port = nonsense.sockets[0].getsockname()
        servers = f"{host}:{port},{cluster[2].address}"
        assert await AdminClient({"bootstrap.servers": servers}).list_reassignments() == {}
        with pytest.raises(NotAdmittedError, match="check that it is a Kafka server"):
            await AdminClient({"bootstrap.servers": f"{host}:{port}"}).list_topics()


async def test_a_controller_that_hangs_is_left_for_the_one_that_is_it_then(cluster: ScriptedCluster) -> None:
    """It hangs before the request is sent, so that the next one may be asked."""
    cluster[1].hangs = True
    admin = cluster.client(1, 2, socket_connection_setup_timeout_ms=1_000)

    async def move() -> None:
        await asyncio.sleep(0.5)
        cluster.controller = 3

    moved = asyncio.create_task(move())
    assert await admin.list_reassignments(timeout_ms=15_000) == {}
    await moved
    cluster[1].hangs, cluster.controller = False, 1
    admin = cluster.client(2, socket_connection_setup_timeout_ms=1_000)
    await admin.list_reassignments()
    cluster[1].hangs, cluster.controller = True, 3
    await admin.create_topic("new", 1, 1, timeout_ms=15_000)
    assert len(cluster[3].list_requests(CREATE_TOPICS)) == 1


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_controller_that_hangs_on_a_question_is_asked_no_more_when_another_is_it(
    cluster: ScriptedCluster, monkeypatch: pytest.MonkeyPatch, *, is_known: bool
) -> None:
    """This holds even if the only server that was named hangs."""
    monkeypatch.setattr("controller_core.client.cluster.PATIENCE_MS", 500)
    admin = cluster.client(1 if is_known else 2, socket_connection_setup_timeout_ms=500)
    await admin.list_reassignments()

    def hangs_from_now_on(broker: ScriptedBroker, _: object) -> None:
        broker.hangs = True
        broker.cluster.controller = 3

    cluster[1].answers[46].append(hangs_from_now_on)
    cluster[1].delay_s = 0.1
    assert await admin.list_reassignments(timeout_ms=15_000) == {}


async def test_users_are_listed_once_a_failover_is_over(cluster: ScriptedCluster) -> None:
    """Until then the controller ends the connection, and no broker knows a controller. Each is asked once a round."""
    asked: list[int] = []

    def fails_over(broker: ScriptedBroker, _: object) -> Answer:
        asked.append(broker.id)
        if len(asked) > 2 * len(cluster.brokers):
            cluster.controller = 3
        if broker.id == cluster.controller == 3:
            return users
        return None if broker.id == cluster.controller else fill_response(type(users), ErrorCode.not_controller)

    users = fill_response(load_response_schema(DESCRIBE_SCRAM, 0), has_parts=False)
    cluster.answers[DESCRIBE_SCRAM] = fails_over
    assert await cluster.client().list_scram_users() == {}
    assert asked[:6] == [1, 2, 3, 1, 2, 3]
    assert asked[-1] == 3


async def test_a_broker_that_hangs_on_the_users_is_left_for_the_next(
    cluster: ScriptedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller relays nothing, so the brokers are asked."""
    monkeypatch.setattr("controller_core.client.cluster.PATIENCE_MS", 300)

    def hangs_from_now_on(broker: ScriptedBroker, _: object) -> None:
        broker.hangs = True

    admin = cluster.client(3)
    await admin.describe_cluster()
    cluster[1].answers[DESCRIBE_SCRAM].append(None)
    cluster[2].delay_s = 1.0
    cluster[2].answers[DESCRIBE_SCRAM].append(hangs_from_now_on)
    assert await admin.list_scram_users(timeout_ms=15_000) == {}
    assert cluster[3].list_requests(DESCRIBE_SCRAM)


@pytest.mark.parametrize("ranges", [KAFKA_2_8, KAFKA_4], ids=["2.8", "4.0"])
async def test_every_call_is_made_in_versions_that_the_servers_speak(
    cluster: ScriptedCluster, ranges: dict[int, tuple[int, int]]
) -> None:
    for broker in cluster.brokers.values():
        broker.ranges = dict(ranges)
    speaks(cluster, ranges[UPDATE_FEATURES][1])
    admin = cluster.client()
    for call in every_call(admin).values():
        await call()
    for request in (each for broker in cluster.brokers.values() for each in broker.asked):
        oldest, newest = ranges[request.__api_key__]
        assert oldest <= request.__version__ <= newest


async def test_an_api_that_the_server_does_not_know_is_named(cluster: ScriptedCluster) -> None:
    for broker in cluster.brokers.values():
        del broker.ranges[46]
        broker.ranges[CREATE_TOPICS] = (0, 4)
    with pytest.raises(Unsupported, match="cannot be asked: it does not support ListPartitionReassignments"):
        await cluster.client().list_reassignments()
    await cluster.client().create_topic("orders", 3, 2)
    assert cluster[1].list_requests(CREATE_TOPICS)[0].__version__ == 4


async def test_a_request_that_an_old_version_cannot_say_is_not_sent(cluster: ScriptedCluster) -> None:
    """An old Metadata request would create the topics that it names."""
    for broker in cluster.brokers.values():
        broker.ranges[METADATA] = (0, 3)
    with pytest.raises(
        Unsupported,
        match="supports versions 0 to 3 of Metadata, and the request needs version 11, because an older one",
    ):
        await cluster.client().describe_topic("orders")
    assert not cluster[2].asked


async def test_updates_of_features_are_as_safe_as_the_controller_has_them(cluster: ScriptedCluster) -> None:
    """A user who wants all or none gets no weaker guarantee from an older server."""
    admin = cluster.client()
    speaks(cluster, 0)
    both = [FeatureUpdate(feature="f", level=1), FeatureUpdate(feature="g", level=1)]
    with pytest.raises(Unsupported, match="ask for one at a time"):
        await admin.update_features(both)
    assert not cluster[1].list_requests(UPDATE_FEATURES)
    await admin.update_features([FeatureUpdate(feature="f", level=1, type=UpdateType.ADD_OR_UPDATE)])
    await admin.delete_features(["f"])
    sent = cluster[1].list_requests(UPDATE_FEATURES)
    assert [(each.__version__, each.feature_updates[0].allow_downgrade) for each in sent] == [(0, False), (0, True)]
    speaks(cluster, -1)
    with pytest.raises(Unsupported, match="accepts no updates of features"):
        await admin.delete_features(["f"])
    speaks(cluster, 2)
    cluster[1].ranges[UPDATE_FEATURES] = (0, 1)  # another is the controller by the time that it is asked
    with pytest.raises(Unsupported, match="0 to 1 of UpdateFeatures"):
        await admin.update_features(both)


async def test_who_does_not_negotiate_asks_at_once(cluster: ScriptedCluster) -> None:
    cluster[1].ranges.clear()
    assert await RequestClient([cluster[1].address]).ask_one(NO_TOPICS, MetadataResponse)
    with pytest.raises(Unsupported):
        await RequestClient([cluster[1].address], negotiates=True).ask_one(NO_TOPICS, MetadataResponse)


async def test_what_was_sent_and_not_answered_may_have_been_done(cluster: ScriptedCluster) -> None:
    admin = cluster.client()
    cluster[1].answers[CREATE_TOPICS].append(None)
    with pytest.raises(OutcomeUnknown):
        await admin.create_topic("new", 1, 1)
    cluster[1].hangs = True
    with pytest.raises(Unreachable, match="asked for its versions"):
        await cluster.client(2, socket_connection_setup_timeout_ms=200).create_topic("new", 1, 1, timeout_ms=800)
    assert DESCRIBE_CONFIGS not in [each.__api_key__ for each in cluster[1].asked]
