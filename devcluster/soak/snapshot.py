"""A snapshot of the whole cluster: its znodes, each broker's metadata, and the brokers' disks."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kio.schema.metadata.v9.request import MetadataRequest

from devcluster.clients.requests import ConnectionClosed, send_request
from devcluster.soak.operations import Partition, Replicas

_ALL_METADATA: Final = MetadataRequest(
    topics=None, include_cluster_authorized_operations=False, include_topic_authorized_operations=False
)
"""The request in the newest version that brokers of 2.8 support."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The state of a partition in its znode or a broker's metadata; replicas in ascending order."""

    leader: int
    leader_epoch: int
    isr: Replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerView:
    """A broker's metadata for clients, and its log directories."""

    controller: int
    assigned: Mapping[Partition, Replicas]
    states: Mapping[Partition, State]
    brokers: frozenset[int]
    logs: frozenset[str]
    """The names of its log directories: `topic-0` for a replica, a longer one for a replica that is being deleted."""
    abandoned: frozenset[str] = frozenset()
    """Directories that never became a replica's log, see `is_abandoned`; they are not among the logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state to check."""

    controller: int | None
    controller_epoch: int
    topics: Mapping[str, int]
    """The topics, and their numbers of partitions."""
    assigned: Mapping[Partition, Replicas]
    reassigning: frozenset[Partition]
    states: Mapping[Partition, State]
    state_epochs: Mapping[Partition, int]
    """The controller epoch in each state."""
    requests: tuple[str, ...]
    """The remaining requests in `/admin`."""
    configs: Mapping[str, Mapping[str, str]]
    """The configurations, by the path below `/config`."""
    registered: frozenset[int]
    brokers: Mapping[int, BrokerView | None]
    """Each broker's view; None if it does not answer."""


def take_snapshot(client: KazooClient, brokers: Mapping[int, tuple[tuple[str, int], Path]]) -> Snapshot:
    """Read everything. `brokers`: each one's address and log folder. Raises `KazooException`."""
    controller = _read(client, "/controller")
    topics = {topic: _read(client, f"/brokers/topics/{topic}") for topic in _children(client, "/brokers/topics")}
    topics = {topic: content for topic, content in topics.items() if content}
    assigned = {
        (topic, int(number)): tuple(replicas)
        for topic, content in topics.items()
        for number, replicas in content["partitions"].items()
    }
    found = {partition: _read(client, _state_path(partition)) for partition in assigned}
    states = {partition: state for partition, state in found.items() if state}
    return Snapshot(
        controller=int(controller["brokerid"]) if controller else None,
        controller_epoch=int(_read(client, "/controller_epoch") or 0),
        topics={topic: len(content["partitions"]) for topic, content in topics.items()},
        assigned=assigned,
        reassigning=frozenset(_list_reassigning(topics)),
        states={partition: _state(znode) for partition, znode in states.items()},
        state_epochs={partition: int(znode["controller_epoch"]) for partition, znode in states.items()},
        requests=tuple(_requests(client)),
        configs={
            f"{kind}/{name}": (_read(client, f"/config/{kind}/{name}") or {}).get("config", {})
            for kind in ("topics", "brokers")
            for name in _children(client, f"/config/{kind}")
        },
        registered=frozenset(int(broker) for broker in _children(client, "/brokers/ids")),
        brokers={broker: _view(address, folder) for broker, (address, folder) in brokers.items()},
    )


def _view(address: tuple[str, int], folder: Path) -> BrokerView | None:
    try:
        answer = send_request(address, _ALL_METADATA)
    except (OSError, ConnectionClosed):
        return None
    directories = [path for path in folder.iterdir() if path.is_dir()]
    abandoned = {path.name for path in directories if path.exists() and is_abandoned(path)}
    partitions = {
        (str(topic.name), int(partition.partition_index)): partition
        for topic in answer.topics
        for partition in topic.partitions
    }
    return BrokerView(
        controller=int(answer.controller_id),
        brokers=frozenset(int(broker.node_id) for broker in answer.brokers),
        assigned={name: tuple(map(int, found.replica_nodes)) for name, found in partitions.items()},
        states={
            name: State(
                leader=int(found.leader_id),
                leader_epoch=int(found.leader_epoch),
                isr=tuple(sorted(map(int, found.isr_nodes))),
            )
            for name, found in partitions.items()
        },
        logs=frozenset(path.name for path in directories if path.name not in abandoned),
        abandoned=frozenset(abandoned),
    )


def is_abandoned(directory: Path) -> bool:
    """Return True if a broker abandoned the directory because its session ended before the log in it was made.

    Kafka reads the topic's configuration between making the directory and the log. On a failure it leaves the
    directory, and does not know of it until its next start, so no controller can make it delete the directory. Every
    log that was ever served has its topic's id in `partition.metadata`.
    """
    try:
        return not (directory / "partition.metadata").exists() and all(
            path.stat().st_size == 0 for path in directory.glob("*.log")
        )
    except FileNotFoundError:
        return False  # It is being deleted right now.


def _state(znode: Mapping[str, Any]) -> State:
    return State(leader=znode["leader"], leader_epoch=znode["leader_epoch"], isr=tuple(sorted(znode["isr"])))


def _state_path(partition: Partition) -> str:
    topic, number = partition
    return f"/brokers/topics/{topic}/partitions/{number}/state"


def _list_reassigning(topics: Mapping[str, Any]) -> Iterable[Partition]:
    for topic, content in topics.items():
        for field in ("adding_replicas", "removing_replicas"):
            for number, replicas in content.get(field, {}).items():
                if replicas:
                    yield topic, int(number)


def _requests(client: KazooClient) -> Iterable[str]:
    for path in ("/admin/reassign_partitions", "/admin/preferred_replica_election"):
        if (content := _read(client, path)) is not None:
            yield f"{path} {json.dumps(content)}"
    for topic in _children(client, "/admin/delete_topics"):
        yield f"/admin/delete_topics/{topic}"


def _read(client: KazooClient, path: str) -> Any:
    try:
        data, _ = client.get(path)
    except NoNodeError:
        return None
    return json.loads(data) if data else {}


def _children(client: KazooClient, path: str) -> list[str]:
    try:
        return sorted(client.get_children(path))
    except NoNodeError:
        return []
