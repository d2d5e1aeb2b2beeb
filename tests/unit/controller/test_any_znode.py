"""Any content may be in any znode, before a controller takes over or while it leads: everything else is served.

Hypothesis writes any bytes, any JSON, and well-formed content with one value that its type cannot hold, into znodes of
every kind, while a cluster works. A topic that is created afterwards has its leader, no controller resigned, and every
broker can read all its requests. Only an unreadable `/controller_epoch` ends a process (`test_role`).
"""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import Create
from simulation.checks import simulate_cluster
from simulation.cluster import Cluster, tp
from simulation.process import Process
from tests.unit.journal.memory import MemoryJournal

REGISTRATION: Final = {
    "version": 5,
    "host": "somewhere",
    "port": 9092,
    "endpoints": ["PLAINTEXT://somewhere:9092", "CLIENT://elsewhere:9093"],
    "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT", "CLIENT": "SASL_SSL"},
    "features": {"metadata.version": {"min_version": 1, "max_version": 3}},
    "rack": "r1",
}
TOPIC: Final = {
    "version": 3,
    "topic_id": "XRwcjopbTw6dfgEjRWeJqw",
    "partitions": {"0": [1, 2], "1": [2, 3, 1]},
    "adding_replicas": {"1": [1]},
    "removing_replicas": {"1": [3]},
    "kontroller_origin_replicas": {"1": [2, 3]},
}
STATE: Final = {
    "version": 1,
    "leader": 1,
    "leader_epoch": 5,
    "controller_epoch": 1,
    "isr": [1, 2],
    "leader_recovery_state": 0,
}
ENTRY: Final = {"topic": "orders", "partition": 1, "replicas": [3, 2]}
THROTTLE: Final = {"version": 1, "bytes_per_second": 9, "is_begun": True, "moves": {"orders": {"0": [[1, 2], [2, 3]]}}}
CLAIM: Final = {"values": ["9"], "is_created": True}

WELL_FORMED: Final[dict[str, object]] = {
    f"{paths.BROKER_IDS}/7": REGISTRATION,
    f"{paths.BROKER_IDS}/3": REGISTRATION,
    f"{paths.TOPICS}/other": TOPIC,
    f"{paths.TOPICS}/orders": TOPIC,
    f"{paths.TOPICS}/orders/partitions/0/state": STATE,
    f"{paths.TOPICS}/other/partitions/1/state": STATE,
    paths.REASSIGN_PARTITIONS: {"version": 1, "partitions": [ENTRY, {**ENTRY, "topic": "other", "partition": 0}]},
    paths.PREFERRED_REPLICA_ELECTION: {"version": 1, "partitions": [ENTRY]},
    f"{paths.PARTITIONS_ADD}/orders/2": {"version": 1, "replicas": [3, 2]},
    f"{paths.PARTITIONS_REMOVE}/orders/1": {"version": 1, "begun_for_topic_id": "XRwcjopbTw6dfgEjRWeJqw"},
    f"{paths.PARTITIONS_REASSIGNED}/orders/0": {"version": 1, "replicas": [3, 2]},
    f"{paths.DELETE_TOPICS}/ghost": {},
    f"{paths.ISR_CHANGE_PREFIX}0000000007": {"version": 1, "partitions": [ENTRY]},
    f"{paths.LOG_DIR_EVENT_PREFIX}0000000007": {"version": 1, "broker": 2, "event": 1},
    f"{paths.CONFIG_CHANGE_PREFIX}0000000007": {"version": 2, "entity_path": "topics/orders"},
    f"{paths.TOPIC_CONFIGS}/orders": {"version": 1, "config": {"unclean.leader.election.enable": "true"}},
    paths.broker_config(None): {"version": 1, "config": {"unclean.leader.election.enable": "true"}},
    paths.FEATURE: {"version": 2, "status": 1, "features": {"f": {"max_version_level": 3}}},
    paths.PRODUCER_ID_BLOCK: {"version": 1, "broker": 1, "block_start": "0", "block_end": "999"},
    paths.CLUSTER_ID: {"version": "1", "id": "Yw_zLcjRQe2"},
    f"{paths.REMOVED_REPLICAS}/2,orders,0": {"version": 1, "topic_id": "XRwcjopbTw6dfgEjRWeJqw"},
    paths.DELETED_TOPICS: {"version": 1, "topics": [{"name": "gone", "partitions": 2}]},
    paths.GRANTED_SHUTDOWNS: {"version": 1, "brokers": [{"id": 2, "epoch": 7}]},
    paths.THROTTLES: {"version": 1, "claims": {"topics/orders": {"leader.replication.throttled.replicas": CLAIM}}},
    f"{paths.THROTTLES}/somebody": THROTTLE,
}
FOLDERS: Final = (
    paths.BROKER_IDS, paths.TOPICS, paths.DELETE_TOPICS, paths.ISR_CHANGE_NOTIFICATION, paths.LOG_DIR_EVENT_NOTIFICATION,
    paths.CONFIG_CHANGES, paths.TOPIC_CONFIGS, paths.BROKER_CONFIGS, paths.REMOVED_REPLICAS, paths.THROTTLES,
    paths.PARTITIONS_ADD, paths.PARTITIONS_REMOVE, paths.PARTITIONS_REASSIGNED, f"{paths.PARTITIONS_ADD}/orders",
    f"{paths.PARTITIONS_REMOVE}/orders", f"{paths.PARTITIONS_REASSIGNED}/orders",
)  # fmt: skip
MANY_DIGITS: Final = "9" * 4400
IS_NIGHT: Final = settings.get_current_profile_name() == "nightly"
EXAMPLES: Final = settings(max_examples=500 if IS_NIGHT else 60, derandomize=not IS_NIGHT, deadline=None)

odd_names = st.sampled_from(
    ["x", "-1", "007", "1.5", "٣", "2147483648", MANY_DIGITS, "a b", "ü", "a,b,c", "1,orders,x", "2,orders,2147483648",
     f"config_change_{MANY_DIGITS}", "config_change_2147483647", "%41", "%ff", "<default>", "t" * 250, "orders,0"]
)  # fmt: skip
odd_values: st.SearchStrategy[object] = st.sampled_from(
    [None, True, -1, -2, 0, 2**15, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 2**64, 1.5, "", "x", "..", "a/b", "2147483648",
     MANY_DIGITS, "ü" * 40_000, "PLAINTEXT://somewhere:9094", "odd://[::1]:1", [2, 1, 9],
     [], [[]], [1, 1], [2**31], [None], {}, {"": ""}, {"x": [1]}, {MANY_DIGITS: [1]}]
)  # fmt: skip
deep = st.sampled_from([b"[" * 300 + b"]" * 300, b'{"partitions":' * 300 + b"1" + b"}" * 300, b"[" * 100_000])
garbage = deep | st.sampled_from(
    [b"", b"\xef\xbb\xbf{}", b"NaN", b'{"version":Infinity}', b"\xff\xfe", b"null", b'"', b'{"version":1,"version":2}',
     b"x" * 1_000_000, b'{"version":99}', b'{"version":1}', b"[" + b"0," * 50_000 + b"0]"]
)  # fmt: skip
any_json = st.recursive(
    odd_values, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner), max_leaves=6
).map(lambda value: json.dumps(value).encode())


@dataclass(frozen=True, slots=True)
class Znode:
    path: str
    data: bytes


def _places(value: object, above: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """Yield the places at which a value may be replaced: every field and every item, at any depth."""
    items: Sequence[tuple[object, object]] = ()
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, inner in items:
        yield (*above, key)
        yield from _places(inner, (*above, key))


def _spoil(value: Any, place: tuple[object, ...], odd: object, *, is_key: bool) -> Any:
    copy: Any = orjson.loads(orjson.dumps(value))
    *above, last = place
    parent = copy
    for key in above:
        parent = parent[key]
    if is_key and isinstance(parent, dict):
        parent[odd if isinstance(odd, str) else str(odd)] = parent.pop(last)
    else:
        parent[last] = odd
    return copy


@st.composite
def znodes(draw: st.DrawFn) -> Znode:
    path = draw(st.sampled_from(sorted(WELL_FORMED)))
    places = sorted(_places(WELL_FORMED[path]), key=repr)
    if not places or draw(st.integers(0, 3)) == 0:
        return Znode(path, draw(garbage | any_json | st.binary(max_size=40)))
    spoiled = _spoil(
        WELL_FORMED[path], draw(st.sampled_from(places)), draw(odd_values), is_key=draw(st.integers(0, 3)) == 0
    )
    return Znode(path, json.dumps(spoiled).encode())


@st.composite
def oddly_named(draw: st.DrawFn) -> Znode:
    return Znode(f"{draw(st.sampled_from(FOLDERS))}/{draw(odd_names)}", draw(st.sampled_from([b"", b"{}"])))


def _keeps_brokers_out(znode: Znode) -> bool:
    """Return True if the znode finalizes features. A new controller ignores brokers that do not support them (KIP-584),
    which is no error."""
    if znode.path != paths.FEATURE:
        return False
    try:
        return bool(codecs.decode_features(znode.data).features)
    except MalformedZnode:
        return False


anything = (znodes() | oddly_named()).filter(lambda znode: not _keeps_brokers_out(znode))
some_znodes = st.lists(anything, min_size=1, max_size=4)


def write(cluster: Cluster, znode: Znode) -> None:
    """Writes a znode, and makes those above it that are missing."""
    parts = znode.path.split("/")
    for end in range(2, len(parts)):
        parent = "/".join(parts[:end])
        if not cluster.exists(parent):
            data = orjson.dumps(WELL_FORMED[parent]) if parent in WELL_FORMED else b""
            cluster.write(Create(path=parent, data=data))
    cluster.put(znode.path, znode.data)


async def start_work(cluster: Cluster) -> Process:
    cluster.journal = MemoryJournal()
    cluster.ours = {1, 2, 3}
    cluster.start_brokers(1, 2, 3)
    cluster.create_topic("orders", [1, 2], [2, 3])
    return await cluster.serve()


async def assert_a_new_topic_is_served(cluster: Cluster) -> None:
    new = tp("created-afterwards")
    cluster.create_topic(new.topic, [1, 2])
    await cluster.settle(20_000)
    assert cluster.leadership(new) == (1, [1, 2])
    assert cluster.broker(1).leads(new)
    assert cluster.broker(2).follows(new)
    assert cluster.broker(1).metadata.partitions[new].leader == 1
    for number in (1, 2):
        for request in cluster.broker(number).requests:
            assert list(request.topic_states) is not None
    assert cluster.active.metric("kontroller_active_controller") == 1


def epoch(cluster: Cluster) -> int:
    return codecs.decode_controller_epoch(cluster.data(paths.CONTROLLER_EPOCH) or b"")


@EXAMPLES
@given(written=some_znodes)
def test_whatever_is_written_while_a_controller_leads_a_new_topic_is_served(written: list[Znode]) -> None:
    async def run() -> None:
        async with simulate_cluster() as cluster:
            await start_work(cluster)
            before = epoch(cluster)
            for znode in written:
                write(cluster, znode)
            await cluster.settle(20_000)
            await assert_a_new_topic_is_served(cluster)
            assert epoch(cluster) == before

    asyncio.run(run())


@EXAMPLES
@given(written=some_znodes, is_hot=st.booleans())
@example(written=[Znode(f"{paths.BROKER_IDS}/7", b'{"endpoints":["X://h:1"],"version":5}')], is_hot=False)
def test_whatever_is_written_before_a_takeover_a_new_topic_is_served(written: list[Znode], is_hot: bool) -> None:
    async def run() -> None:
        async with simulate_cluster() as cluster:
            first = await start_work(cluster)
            before = epoch(cluster)
            if is_hot:
                cluster.start_controller(1001)
                await cluster.settle()
            else:
                await first.kill()
            for znode in written:
                write(cluster, znode)
            await cluster.settle(20_000)
            if is_hot:
                await first.kill()
                await cluster.settle(20_000)
            else:
                await cluster.serve(1001)
            await assert_a_new_topic_is_served(cluster)
            assert epoch(cluster) == before + 1

    asyncio.run(run())


@pytest.mark.parametrize("path", sorted(WELL_FORMED))
def test_the_well_formed_content_is_used(path: str) -> None:
    """The content that the tests above spoil is used if it is intact; otherwise spoiling it would prove nothing."""

    async def run() -> None:
        async with simulate_cluster() as cluster:
            await start_work(cluster)
            write(cluster, Znode(path, orjson.dumps(WELL_FORMED[path])))
            await cluster.active.kill()
            await cluster.serve(1001)
            assert cluster.active.metric("kontroller_unusable_znodes", kind="topic") in (None, 0)
            assert not any("unreadable" in entry["event"] for entry in cluster.logs)

    asyncio.run(run())
