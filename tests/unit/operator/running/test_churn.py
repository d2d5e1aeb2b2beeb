"""The writes to the API server follow from events: few events cause few writes, and nothing is written twice."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import TopicAssignment
from controller_core.zk import codecs, paths
from controller_core.zk.delegating_session import DelegatingSession
from controller_core.zk.session import ANY_VERSION, Create, SetData, Watch, ZkNode, ZkSession
from controller_operator.connecting import make_zookeeper_connector
from controller_operator.kafka.cluster_files import ClusterFiles
from controller_operator.kubernetes.object_api import ApiError, ApiForbidden, ApiUnavailable
from controller_operator.kubernetes.object_store import Key
from controller_operator.observation.observer import ChrootMissing
from controller_operator.plans.outcome import Notice
from controller_operator.reconciling import event_recorder, object_writer, runtime
from controller_operator.reconciling.event_recorder import EventRecorder
from controller_operator.resources.cluster_address import AtZooKeeper
from controller_operator.settings import OperatorSettings
from tests.unit.operator.clusters import ORDERS_ID, assign, lead, raw, topic
from tests.unit.operator.running.operating import CLUSTER, CONNECT, Operating, run_operator, watch_objects
from tests.unit.operator.simulated_api import SimulatedApiServer

ORDERS = TopicName("orders")
MOVE = Key("PartitionReassignment", "shop", "move")


def a_topic(name: str) -> dict[str, Any]:
    return raw("KafkaTopic", {"partitions": 1, "replicationFactor": 1}, name=name)


def writes_of(around: Operating, kind: str) -> int:
    return sum(key.kind == kind for key, _ in around.api.status_patches)


async def test_a_short_outage_of_zookeeper_writes_only_kafka_clusters() -> None:
    names = [f"t{number}" for number in range(20)]
    async with run_operator(*map(a_topic, names), unreachable_grace_seconds=0) as around:
        keys = [Key("KafkaTopic", "shop", name) for name in names]
        await around.wait_until(lambda: all((around.api.peek(key) or {})["status"].get("counts") for key in keys))
        await around.wait_for_reason(CLUSTER, "PartitionsOffline")
        before = writes_of(around, "KafkaTopic")
        around.take_zookeeper_away()
        await around.wait_for_reason(CLUSTER, "ZooKeeperUnavailable")
        for key in keys:
            await around.wait_until_looked_at(key, 1)
        around.bring_zookeeper_back()
        await around.wait_for_reason(CLUSTER, "PartitionsOffline")
        for key in keys:
            await around.wait_until_looked_at(key, 1)
        assert writes_of(around, "KafkaTopic") == before


async def test_what_is_asked_of_the_controller_has_no_other_topic_looked_at() -> None:
    names = [f"t{number}" for number in range(20)]
    async with run_operator(*map(a_topic, names)) as around:
        await around.wait_until(lambda: all(_is_counted(around, name) for name in names))
        await around.wait_for_reason(CLUSTER, "PartitionsOffline")
        await around.wait_until_looked_at(CLUSTER)
        before = around.looks("KafkaTopic")
        partitions = [TopicPartition(TopicName(name), PartitionId(0)) for name in names[:5]]
        request = {tp: (BrokerId(2),) for tp in partitions}
        data = codecs.encode_reassignment(request)
        await around.write(Create(path=paths.REASSIGN_PARTITIONS, data=data))
        for done in partitions[:-1]:
            del request[done]
            await _write_and_wait(
                around, SetData(path=paths.REASSIGN_PARTITIONS, data=codecs.encode_reassignment(request))
            )
        await _write_and_wait(
            around, Create(path=paths.PREFERRED_REPLICA_ELECTION, data=codecs.encode_partitions(partitions))
        )
        assert around.looks("KafkaTopic") == before
        await _write_and_wait(around, Create(path=paths.delete_topic(TopicName("t7"))))
        await around.wait_for_reason(Key("KafkaTopic", "shop", "t7"), "TopicBeingDeleted")
        assert around.looks("KafkaTopic") - before <= 2


async def test_what_is_about_all_topics_is_not_planned_again_for_each_that_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runtime, "_ABOUT_ALL_S", 0.5)
    drain = raw("PartitionReassignment", {"drainBrokers": [1], "suspend": True}, name="move", uid="uid-m")
    data = codecs.encode_topic(TopicAssignment(topic_id=ORDERS_ID, partitions={PartitionId(0): assign([1])}))
    async with watch_objects(drain) as around:
        await around.write(Create(path=paths.topic(TopicName("t0")), data=data))
        around.runtime.begin_work()
        await around.wait_for_reason(MOVE, "Suspended")
        before = around.looks("PartitionReassignment")
        for number in range(1, 8):
            await _write_and_wait(around, Create(path=paths.topic(TopicName(f"t{number}")), data=data))
        assert around.looks("PartitionReassignment") - before <= 2
        await around.wait_until(lambda: _counts(around).get("total") == 8)
        monkeypatch.setattr(runtime, "_ABOUT_ALL_S", 1000)
        looks = around.looks("PartitionReassignment")
        await around.write(Create(path=paths.REASSIGN_PARTITIONS, data=codecs.encode_reassignment({})))
        await around.wait_until(lambda: around.looks("PartitionReassignment") > looks)


async def _write_and_wait(around: Operating, op: Create | SetData) -> None:
    """Writes something, and waits until the operator has looked at its cluster because of it."""
    looks = around.looks("KafkaCluster")
    await around.write(op)
    await around.wait_until(lambda: around.looks("KafkaCluster") > looks)


def _is_counted(around: Operating, name: str) -> bool:
    return bool((around.api.peek(Key("KafkaTopic", "shop", name)) or {}).get("status", {}).get("counts"))


async def test_a_topic_from_nothing_to_ready_is_two_statuses() -> None:
    async with run_operator() as around:
        await around.wait_for_reason(CLUSTER, "Reconciled")
        await around.api.apply(a_topic(ORDERS))
        await around.wait_until(lambda: around.zookeeper.tree.read(paths.topic(ORDERS)) is not None)
        partition = TopicPartition(ORDERS, PartitionId(0))
        await around.write(
            Create(path=paths.partitions(ORDERS)),
            Create(path=paths.partition(partition)),
            Create(path=paths.partition_state(partition), data=_encode_state(1)),
        )
        key = Key("KafkaTopic", "shop", ORDERS)
        await around.wait_for_reason(key, "Reconciled")
        await around.wait_until_looked_at(key)
        assert writes_of(around, "KafkaTopic") == 2


async def test_what_grows_in_a_cluster_is_said_now_and_then_and_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_writer, "_LEAST_BETWEEN_PROGRESS_S", 0.5)
    async with run_operator() as around:
        await around.wait_for_reason(CLUSTER, "Reconciled")
        before = writes_of(around, "KafkaCluster")
        data = codecs.encode_topic(TopicAssignment(topic_id=ORDERS_ID, partitions={}))
        for number in range(20):
            await around.write(Create(path=paths.topic(TopicName(f"t{number}")), data=data))
            await around.wait_until(partial(_sees_topics, around, number + 1))
        await around.wait_until(lambda: (around.api.peek(CLUSTER) or {})["status"]["counts"].get("topics") == 20)
        assert writes_of(around, "KafkaCluster") - before < 20


async def test_what_a_user_changes_goes_before_all_that_are_looked_at_again() -> None:
    names = [f"t{number}" for number in range(50)]
    async with run_operator(*map(a_topic, names), workers=1) as around:
        await around.wait_until(lambda: all(around.condition(Key("KafkaTopic", "shop", name)) for name in names))
        await around.wait_until_quiet()
        looks = _looks_of(around)
        around.runtime._queue.add_unhurried(Key("KafkaTopic", "shop", name) for name in names)
        around.runtime._queue.add([Key("KafkaTopic", "shop", "t49")])
        await around.wait_until(lambda: set(names) <= set(looks))
        assert looks.index("t49") <= 2


async def test_what_is_said_of_a_cluster_has_none_of_its_objects_looked_at_and_its_spec_all() -> None:
    async with run_operator(a_topic("one")) as around:
        one = Key("KafkaTopic", "shop", "one")
        await around.wait_for_reason(one, "PartitionsOffline")
        await around.wait_until_looked_at(one)
        looks = _looks_of(around)
        await around.write(Create(path=paths.topic(ORDERS), data=_orders(2, 0)))
        await around.wait_until(lambda: (around.api.peek(CLUSTER) or {})["status"]["counts"]["topics"] == 2)
        await around.wait_until_looked_at(CLUSTER)
        assert "one" not in looks
        spec = {"zookeeper": {"connect": CONNECT}, "allowedNamespaces": []}
        await around.api.apply(raw("KafkaCluster", spec, name="demo"))
        await around.wait_until(lambda: "one" in looks)


async def test_thousands_of_looks_that_wait_for_nothing_let_others_in_between() -> None:
    names = [f"t{number}" for number in range(20)]
    async with run_operator(*map(a_topic, names), workers=1) as around:
        keys = [Key("KafkaTopic", "shop", name) for name in names]
        await around.wait_until(lambda: all(around.condition(key).get("reason") == "PartitionsOffline" for key in keys))
        await around.wait_until_looked_at(CLUSTER)
        looks = _looks_of(around)
        around.runtime._queue.add(keys)
        seen = set()
        while len(looks) < len(names):
            seen.add(len(looks))
            await asyncio.sleep(0)
        assert len(seen) > 5


async def test_a_long_outage_is_said_by_every_object() -> None:
    async with run_operator(a_topic("one"), unreachable_grace_seconds=0, objects_unreachable_grace_seconds=0) as around:
        await around.wait_for_reason(CLUSTER, "PartitionsOffline")
        around.take_zookeeper_away()
        await around.wait_for_reason(Key("KafkaTopic", "shop", "one"), "ZooKeeperUnavailable")


def _orders(partitions: int, done: int) -> bytes:
    """Return a topic of which that many partitions have moved from broker 1 to 2, and the others are moving."""
    moved = [(assign([2]), None)] * done
    moving = [(assign([2, 1], adding=[2], removing=[1]), None)] * (partitions - done)
    return codecs.encode_topic(topic(*moved, *moving).assignment)


async def test_the_progress_of_a_large_move_is_written_now_and_then_and_its_end_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(object_writer, "_PROGRESS_BYTES_PER_S", 1)
    count = 50
    targets = [{"topic": ORDERS, "partition": number, "replicas": [2]} for number in range(count)]
    async with run_operator() as around:
        await around.write(
            Create(path=paths.topic(ORDERS), data=_orders(count, 0)),
            Create(path=paths.partitions(ORDERS)),
            *(
                Create(path=path, data=data)
                for number in range(count)
                for path, data in (
                    (paths.partition(TopicPartition(ORDERS, PartitionId(number))), b""),
                    (paths.partition_state(TopicPartition(ORDERS, PartitionId(number))), _encode_state(2)),
                )
            ),
        )
        await around.api.apply(raw("PartitionReassignment", {"partitions": targets}, name="move"))
        await around.wait_until(lambda: _counts(around).get("moving") == count)
        await around.wait_until_looked_at(MOVE)
        before = writes_of(around, "PartitionReassignment")
        for done in range(1, 6):
            await around.write(SetData(path=paths.topic(ORDERS), data=_orders(count, done), version=ANY_VERSION))
            await around.wait_until(partial(_is_seen, around, done))
            await around.wait_until_looked_at(MOVE)
        assert writes_of(around, "PartitionReassignment") - before <= 1
        await around.write(SetData(path=paths.topic(ORDERS), data=_orders(count, count), version=ANY_VERSION))
        await around.wait_for_reason(MOVE, "Completed")
        assert _counts(around)["done"] == count


def _is_seen(around: Operating, done: int) -> bool:
    """Return True if the operator's view shows that that many partitions have moved."""
    view = around.runtime._last_views.get(AtZooKeeper(CONNECT))
    return view is not None and view.counts.reassigning == view.counts.partitions - done


def _encode_state(leader: int) -> bytes:
    state = lead(leader, [leader])
    return codecs.encode_partition_state(state.leader_and_isr, state.controller_epoch)


def _looks_of(around: Operating) -> list[str]:
    """The names of the objects that are looked at from now on."""
    looks: list[str] = []
    reconcile = around.runtime._reconciler.reconcile

    async def watch_look(key: Key) -> Any:
        looks.append(key.name)
        return await reconcile(key)

    around.runtime._reconciler.reconcile = watch_look  # type: ignore[method-assign]
    return looks


def _sees_topics(around: Operating, count: int) -> bool:
    view = around.runtime._last_views.get(AtZooKeeper(CONNECT))
    return view is not None and len(view.topics) == count


def _counts(around: Operating) -> dict[str, Any]:
    found: dict[str, Any] = (around.api.peek(MOVE) or {}).get("status", {}).get("counts", {})
    return found


async def test_every_time_that_something_happens_is_an_event_and_none_is_told_twice() -> None:
    api = SimulatedApiServer()
    stored = await api.apply(a_topic("one"))
    for occurrence in ("4 1", "4 2", "4 2", "4 3"):
        notice = Notice(reason="DriftCorrected", message="put right: config.a", occurrence=occurrence)
        await EventRecorder(api).post(stored, notice)
    assert len(api.events) == 3
    recorder = EventRecorder(api)
    asked = api.requests["create_event"]
    for _ in range(3):
        await recorder.post(stored, Notice(reason="TopicAdopted", message="it was there"))
    assert api.requests["create_event"] == asked + 1


async def test_what_happens_again_and_again_is_one_event_that_counts() -> None:
    api = SimulatedApiServer()
    stored = await api.apply(a_topic("one"))
    recorder = EventRecorder(api)
    for count in (1, 2, 2, 3):
        told = Notice(reason="DriftContested", message=f"put right {count} times", series="since noon", count=count)
        await recorder.post(stored, told)
    await EventRecorder(api).post(stored, replace(told, message="put right 4 times", count=4))  # after a restart
    (event,) = api.events
    assert (event["count"], event["message"]) == (4, "put right 4 times")
    assert api.requests["create_event"] == 4, "the same count is not told twice"
    await recorder.post(stored, replace(told, series="since one o'clock", count=1))
    assert [each["count"] for each in api.events] == [4, 1]


class Blinking(SimulatedApiServer):
    """An API server that takes no events for a moment."""

    trouble: ApiError | None = None

    async def create_event(self, namespace: str, event: dict[str, Any]) -> None:
        if self.trouble is not None:
            self.requests["create_event"] += 1
            raise self.trouble
        await super().create_event(namespace, event)


async def test_an_event_that_the_api_server_could_not_take_is_posted_once_it_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_recorder, "_FIRST_PAUSE_S", 0.01)
    api = Blinking()
    stored = await api.apply(a_topic("one"))
    recorder = EventRecorder(api)
    api.trouble = ApiUnavailable("a blip")
    for reason in ("ReassignmentCompleted", "TopicAdopted", "TopicAdopted"):
        await recorder.post(stored, Notice(reason=reason, message="once only"))
    await Operating().wait_until(lambda: api.requests["create_event"] > 4)
    api.trouble = None
    await Operating().wait_until(lambda: len(api.events) == 2)
    assert [each["reason"] for each in api.events] == ["ReassignmentCompleted", "TopicAdopted"]
    await recorder.close()


async def test_an_event_that_is_refused_is_not_posted_for_ever() -> None:
    api = Blinking()
    stored = await api.apply(a_topic("one"))
    recorder = EventRecorder(api)
    api.trouble = ApiForbidden("the namespace is being deleted")
    for _ in range(2):
        await recorder.post(stored, Notice(reason="TopicAdopted", message="it was there"))
    assert api.requests["create_event"] == 1
    await recorder.close()


async def test_each_drift_of_a_topic_is_told_and_counted_in_one_event() -> None:
    async with run_operator(a_topic(ORDERS)) as around:
        path = paths.topic_config(ORDERS)
        key = Key("KafkaTopic", "shop", ORDERS)
        await around.api.apply(raw("KafkaTopic", {**a_topic(ORDERS)["spec"], "config": {"retention.ms": "1"}}))
        for told in range(3):
            await around.wait_until(lambda: _config(around).get("retention.ms") == "1")
            await around.wait_until(lambda: around.condition(key, "Drifted").get("status") == "False")
            await around.write(
                SetData(path=path, data=codecs.encode_config({"retention.ms": "2"}), version=ANY_VERSION)
            )
            await around.wait_until(partial(_has_told_more_than, around, told))
        (event,) = around.events("DriftCorrected")
        assert event["count"] == 3


def _has_told_more_than(around: Operating, times: int) -> bool:
    counts: list[int] = [each["count"] for each in around.events("DriftCorrected")]
    return sum(counts) > times


def _config(around: Operating) -> dict[str, str]:
    node = around.zookeeper.tree.read(paths.topic_config(ORDERS))
    return codecs.decode_config(node.data, "") if node else {}


async def test_a_topic_s_own_moves_expire() -> None:
    async with run_operator(a_topic(ORDERS)) as around:
        key = Key("KafkaTopic", "shop", ORDERS)
        await around.wait_until(lambda: (around.api.peek(key) or {})["status"].get("counts"))
        spec = {**a_topic(ORDERS)["spec"], "replicationFactor": 2}
        await around.api.apply(raw("KafkaTopic", spec))
        await around.wait_until(lambda: around.api.all("PartitionReassignment"))
        (move,) = around.api.all("PartitionReassignment")
        assert move["spec"]["ttlSecondsAfterFinished"] == 24 * 3600


async def test_a_cluster_that_takes_long_to_read_is_not_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    is_read = asyncio.Event()

    class Slow(DelegatingSession):
        async def read_watched(self, paths: Sequence[str], watch: Callable[[str], Watch]) -> list[ZkNode | None]:
            await is_read.wait()
            return await super().read_watched(paths, watch)

    connect = Operating.connect

    async def slowly(around: Operating, address: str) -> ZkSession:
        return Slow(await connect(around, address))

    monkeypatch.setattr(Operating, "connect", slowly)
    async with run_operator() as around:
        await around.wait_until(lambda: around.sessions)
        await around.wait_until_looked_at(CLUSTER)
        around.runtime._access._trouble_since[AtZooKeeper(CONNECT)] = 0.0  # it has taken as long as the machine is up
        await around.wait_until_looked_at(CLUSTER)
        assert around.condition(CLUSTER)["reason"] == "Progressing"
        assert writes_of(around, "KafkaCluster") == 1
        is_read.set()
        await around.wait_for_reason(CLUSTER, "Reconciled")


async def test_a_chroot_that_is_not_there_is_said_and_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(_connect: str) -> ZkSession:
        raise ChrootMissing("there is no /kafak: use the chroot of the brokers' zookeeper.connect, or start them")

    monkeypatch.setattr(Operating, "connect", lambda _self, connect: refuse(connect))
    async with run_operator(unreachable_grace_seconds=0) as around:
        await around.wait_for_reason(CLUSTER, "ChrootNotFound")
        assert "there is no /kafak" in around.condition(CLUSTER)["message"]
        assert around.condition(CLUSTER)["status"] == "False"


async def test_an_unusable_properties_file_is_reported_on_its_cluster(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"zookeeper.connect={CONNECT}\nzookeeper.auth.digest=oops\n")
    connect = make_zookeeper_connector(OperatorSettings(all_namespaces=True), ClusterFiles([file]))
    monkeypatch.setattr(Operating, "connect", lambda _self, address: connect(address))
    async with run_operator(unreachable_grace_seconds=0) as around:
        await around.wait_for_reason(CLUSTER, "NotAdmitted")
        assert f"{file}: zookeeper.auth.digest is not USER:PASSWORD" in around.condition(CLUSTER)["message"]


async def test_the_operator_s_own_session_makes_no_chroot(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    class Session:
        closed = False

        async def read_many(self, _paths: Any) -> list[None]:
            return [None]

        async def close(self) -> None:
            Session.closed = True

    async def connect(address: str, **options: Any) -> Any:
        asked.update(options)
        return Session()

    monkeypatch.setattr("controller_operator.connecting.KazooSession.connect", connect)
    with pytest.raises(ChrootMissing, match="there is no /kafak"):
        await make_zookeeper_connector(OperatorSettings(all_namespaces=True), ClusterFiles([]))("zk:2181/kafak")
    assert asked["makes_chroot"] is False
    assert Session.closed
