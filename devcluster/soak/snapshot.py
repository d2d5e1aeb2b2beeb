"""The whole cluster at one moment: its znodes, what each broker believes, and what lies on the brokers' disks."""

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
"""In the newest version that brokers of 2.8 know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A partition as a state znode or a broker's metadata has it; replicas in ascending order."""

    leader: int
    leader_epoch: int
    isr: Replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerView:
    """What a broker tells clients, and what it has on disk."""

    controller: int
    assigned: Mapping[Partition, Replicas]
    states: Mapping[Partition, State]
    brokers: frozenset[int]
    logs: frozenset[str]
    """The names of its log directories, `topic-0` for a replica and more for one that is being deleted."""
    abandoned: frozenset[str] = frozenset()
    """Directories that never became a replica's log, see `is_abandoned`; they are not among the logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What there is to check."""

    controller: int | None
    controller_epoch: int
    topics: Mapping[str, int]
    """The topics, and how many partitions they have."""
    assigned: Mapping[Partition, Replicas]
    reassigning: frozenset[Partition]
    states: Mapping[Partition, State]
    state_epochs: Mapping[Partition, int]
    """The controller epoch that each state was written under."""
    requests: tuple[str, ...]
    """The requests that are still in `/admin`."""
    configs: Mapping[str, Mapping[str, str]]
    """By the path below `/config`."""
    registered: frozenset[int]
    brokers: Mapping[int, BrokerView | None]
    """Each broker's view; None where it does not answer."""


def take_snapshot(client: KazooClient, brokers: Mapping[int, tuple[tuple[str, int], Path]]) -> Snapshot:
    """Looks at everything. `brokers`: each one's address and log folder. Raises `KazooException`."""
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
        reassigning=frozenset(_reassigning(topics)),
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
    """Whether it is what a broker leaves when its session ends between the making of a directory and of the log in it.

    Kafka reads the topic's configuration in between, gives up without removing the directory, and knows nothing of it
    until it starts again, so no controller can make it delete that. Every log that was ever served has its topic's id in
    `partition.metadata`.
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


def _reassigning(topics: Mapping[str, Any]) -> Iterable[Partition]:
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
