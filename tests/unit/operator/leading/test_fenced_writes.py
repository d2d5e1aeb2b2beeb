"""A process that has lost its lease writes nothing more, to any server, however late."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from kio.schema.metadata.v11 import MetadataRequest, MetadataResponse

from controller_core.client.transport.request_client import Address, RequestClient
from controller_core.zk import paths
from controller_core.zk.delegating_session import DelegatingSession
from controller_core.zk.session import BadVersion, Create, Delete, NodeExists, SetData, TooLarge, ZkError, ZkNode
from controller_operator.leading.fenced_objects import FencedObjects
from controller_operator.leading.fenced_session import FencedSession
from controller_operator.leading.leadership import NotLeading
from simulation.zookeeper import SimulatedZooKeeper
from tests.unit.operator.clusters import raw
from tests.unit.operator.simulated_api import SimulatedApiServer

TOPIC = Create(path="/a-topic")


@dataclass
class Right:
    """The right to write, which a test gives and takes."""

    is_held: bool = True
    is_confirmed: bool = True
    lease_uid: str = "a-lease"
    confirmations: int = field(default=0)

    def require(self) -> None:
        if not self.is_held:
            raise NotLeading("not leading")

    async def confirm(self) -> None:
        self.confirmations += 1
        if not self.is_confirmed:
            self.is_held = False
            raise NotLeading("another one leads")


async def make_session(zookeeper: SimulatedZooKeeper, right: Right) -> FencedSession:
    session = FencedSession(zookeeper.session(), right)
    await session.raise_fence()
    return session


async def test_a_leader_writes_as_if_there_were_no_fence() -> None:
    zookeeper = SimulatedZooKeeper()
    session = await make_session(zookeeper, Right())
    assert await session.transact([TOPIC, Create(path="/another")]) == ("/a-topic", "/another")
    results = await session.transact_many([[TOPIC], [Delete(path="/another")]])
    assert isinstance(results[0], NodeExists)
    assert results[0].failed.op == TOPIC
    assert results[1] == ("/another",)


async def test_the_next_leader_s_session_ends_the_writes_of_the_one_before_wherever_they_are() -> None:
    """This includes a session that does not know yet, or whose writes were on their way when its process was
    stopped."""
    zookeeper = SimulatedZooKeeper()
    old = await make_session(zookeeper, Right(is_confirmed=False))
    await make_session(zookeeper, Right())
    with pytest.raises(NotLeading):
        await old.transact([TOPIC])
    assert await zookeeper.session().read_many(["/a-topic"]) == [None]


async def test_who_does_not_lead_sends_nothing() -> None:
    zookeeper = SimulatedZooKeeper()
    right = Right()
    session = await make_session(zookeeper, right)
    right.is_held = False
    with pytest.raises(NotLeading):
        await session.transact_many([[TOPIC]])
    with pytest.raises(NotLeading):
        await session.raise_fence()
    assert await zookeeper.session().read_many(["/a-topic"]) == [None]


async def test_a_leader_that_was_stopped_before_it_raised_its_fence_does_not_end_the_next_one() -> None:
    zookeeper = SimulatedZooKeeper()
    await make_session(zookeeper, Right())
    old = FencedSession(_StoppedAfterReading(zookeeper), Right())
    with pytest.raises(BadVersion):
        await old.raise_fence()


class _StoppedAfterReading(DelegatingSession):
    """A session after whose read of the fence another process raises it."""

    def __init__(self, zookeeper: SimulatedZooKeeper) -> None:
        super().__init__(zookeeper.session())
        self._zookeeper = zookeeper

    async def read_many(self, wanted: Sequence[str]) -> list[ZkNode | None]:
        found = await super().read_many(wanted)
        if wanted == [paths.operator_fence("a-lease")]:
            await make_session(self._zookeeper, Right())
        return found


@pytest.mark.parametrize(
    "meddle",
    [
        SetData(path=paths.operator_fence("a-lease"), data=b"mine"),
        Delete(path=paths.operator_fence("a-lease")),
    ],
)
async def test_somebody_who_touches_the_fence_changes_nothing_for_who_still_has_the_lease(
    meddle: SetData | Delete,
) -> None:
    zookeeper = SimulatedZooKeeper()
    right = Right()
    session = await make_session(zookeeper, right)
    await zookeeper.session().transact([meddle])
    assert await session.transact([TOPIC]) == ("/a-topic",)
    assert right.confirmations == 1
    assert await session.transact([Delete(path="/a-topic")]) == ("/a-topic",)
    assert right.confirmations == 1


async def test_two_installations_do_not_end_each_other_s_writes() -> None:
    zookeeper = SimulatedZooKeeper()
    here, there = (
        await make_session(zookeeper, Right()),
        await make_session(zookeeper, Right(lease_uid="of-another-cluster")),
    )
    await here.transact([TOPIC])
    await there.transact([Delete(path="/a-topic")])


async def test_what_fits_without_the_fence_alone_is_too_large() -> None:
    zookeeper = SimulatedZooKeeper()
    session = await make_session(zookeeper, Right())
    room = session.max_request_bytes - session.request_bytes([SetData(path=paths.KONTROLLER, data=b"")])
    await session.transact([SetData(path=paths.KONTROLLER, data=b"." * room)])
    with pytest.raises(TooLarge) as refused:
        await session.transact([SetData(path=paths.KONTROLLER, data=b"." * (room + 1))])
    assert refused.value.failed.op.path == paths.KONTROLLER


async def test_no_write_of_objects_is_asked_for_by_who_does_not_lead() -> None:
    server, right = SimulatedApiServer(), Right()
    known = await server.apply(raw("KafkaTopic", {"clusterRef": {"name": "demo"}}, name="orders"))
    api = FencedObjects(server, right)
    await api.patch_status(known, {"partitions": 3})
    known = await api.get(next(iter(server.objects)))
    right.is_held = False
    asked = server.requests.copy()
    for write in (
        api.patch_status(known, {"partitions": 4}),
        api.patch_known_spec(known, {"partitions": 4}),
        api.set_finalizers(known, []),
        api.create(raw("KafkaTopic", {}, name="another")),
        api.delete(known),
        api.create_event("shop", {"metadata": {"name": "an-event"}}),
        api.keep_leftover("kafka", "leftovers", "an-entry", "text"),
        api.write_entry("kafka", "throttles", "an-entry", "text", None),
    ):
        with pytest.raises(NotLeading):
            await write
    assert server.requests == asked
    assert (await api.list_all("KafkaTopic", None)).items
    assert await api.read_config_map("kafka", "throttles") is None


async def test_no_request_is_sent_to_a_broker_by_who_lost_the_lease_while_it_connected() -> None:
    received: asyncio.Queue[bytes] = asyncio.Queue()
    right = Right()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.put_nowait(await reader.read())
        writer.close()

    def lose_right() -> None:
        right.is_held = False
        right.require()

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        address = Address(*server.sockets[0].getsockname()[:2])
        client = RequestClient((address,), before_sending=lose_right)
        request = MetadataRequest(topics=(), allow_auto_topic_creation=False, include_topic_authorized_operations=False)
        with pytest.raises(NotLeading):
            await client.ask(request, MetadataResponse)
        with pytest.raises(NotLeading):
            await client.restrict_to(address).ask_any(request, MetadataResponse)
        assert [await received.get(), await received.get()] == [b"", b""]


async def test_a_lost_connection_is_answered_as_ever() -> None:
    zookeeper = SimulatedZooKeeper()
    session = zookeeper.session()
    fenced = FencedSession(session, Right())
    await fenced.raise_fence()
    zookeeper.disconnect(session)
    (answer,) = await fenced.transact_many([[TOPIC]])
    assert isinstance(answer, ZkError)
