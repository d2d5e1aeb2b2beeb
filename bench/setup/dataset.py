"""The initial cluster of every measurement, as the znodes that a previous controller left.

Topics have 50 partitions with three replicas each, round robin over six brokers. Broker 6 was restarted some time ago
and its leaders did not go back: broker 1 also leads them, a third of all. All replicas are in sync.

One more topic, `probed`, is not measured: a probe changes its ISR back and forth.
"""

import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import orjson

from controller_core.model.ids import BrokerId, ControllerEpoch, LeaderEpoch, PartitionId, TopicId, TopicName
from controller_core.model.metadata import LeaderAndIsr, ReplicaAssignment, TopicAssignment
from controller_core.zk.codecs.topics import encode_partition_state, encode_topic

Znode = tuple[str, str | None]
"""Path and content."""

BROKERS: Final = tuple(map(BrokerId, (1, 2, 3, 4, 5, 6)))
PARTITIONS_OF_A_TOPIC: Final = 50
PROBED_TOPIC: Final = TopicName("probed")
PROBED_REPLICAS: Final = tuple(map(BrokerId, (3, 4, 5)))
CLUSTER_ID: Final = "a1b2c3d4e5f6g7h8i9j0kA"
PREVIOUS_CONTROLLER_EPOCH: Final = ControllerEpoch(7)

_REPLICAS: Final = 3
_RESTARTED: Final = BROKERS[-1]
_NAMESPACE: Final = uuid.UUID("6a2c62b7-2c39-4f3c-8d9b-9b2d8d3f3f01")
_PARENTS: Final = (
    "/cluster",
    "/brokers",
    "/brokers/ids",
    "/brokers/topics",
    "/admin",
    "/admin/delete_topics",
    "/config",
    "/config/topics",
    "/config/brokers",
    "/config/changes",
    "/isr_change_notification",
    "/log_dir_event_notification",
)


def topic_name(number: int) -> TopicName:
    """Return the name of the n-th topic, counted from 0."""
    return TopicName(f"topic-{number:05}")


def topic_path(topic: TopicName) -> str:
    """Return the path of a topic's znode."""
    return f"/brokers/topics/{topic}"


def replicas_of(partition: int) -> tuple[BrokerId, ...]:
    """Return a partition's replicas: the next partition's are one broker further."""
    return tuple(BROKERS[(partition + step) % len(BROKERS)] for step in range(_REPLICAS))


def assignment(topic: TopicName) -> TopicAssignment:
    """Return a topic's assignment. The numbering continues over topics, so that brokers get equal shares of any size."""
    offset = int(topic.rpartition("-")[2]) * PARTITIONS_OF_A_TOPIC
    return TopicAssignment(
        topic_id=TopicId(uuid.uuid5(_NAMESPACE, topic)),
        partitions={
            PartitionId(number): ReplicaAssignment(replicas=replicas_of(offset + number))
            for number in range(PARTITIONS_OF_A_TOPIC)
        },
    )


def leader_and_isr(replicas: tuple[BrokerId, ...]) -> LeaderAndIsr:
    """Return the state of a partition at rest. The restarted broker's leaders are with the next replica."""
    moved = replicas[0] == _RESTARTED
    return LeaderAndIsr(
        leader=replicas[1] if moved else replicas[0], isr=replicas, leader_epoch=LeaderEpoch(int(moved))
    )


def dataset(partitions: int) -> Iterator[Znode]:
    """Yield all znodes, parents first. Raises `ValueError` if that is no whole number of topics."""
    yield from ((path, None) for path in _PARENTS)
    yield "/cluster/id", orjson.dumps({"version": "1", "id": CLUSTER_ID}).decode()
    yield "/controller_epoch", str(PREVIOUS_CONTROLLER_EPOCH)
    probed = TopicAssignment(
        topic_id=TopicId(uuid.uuid5(_NAMESPACE, PROBED_TOPIC)),
        partitions={PartitionId(0): ReplicaAssignment(replicas=PROBED_REPLICAS)},
    )
    yield from topic_znodes(PROBED_TOPIC, probed)
    for number in range(topics_of(partitions)):
        yield from topic_znodes(topic_name(number), assignment(topic_name(number)))


def topics_of(partitions: int) -> int:
    """Return the number of topics for this number of partitions. Raises `ValueError` if that is no whole number."""
    if partitions < PARTITIONS_OF_A_TOPIC or partitions % PARTITIONS_OF_A_TOPIC:
        raise ValueError(f"{partitions} partitions: a multiple of {PARTITIONS_OF_A_TOPIC} is needed")
    return partitions // PARTITIONS_OF_A_TOPIC


def topic_znodes(topic: TopicName, assigned: TopicAssignment) -> Iterator[Znode]:
    """Yield the znodes of a topic and of its partitions' states."""
    path = topic_path(topic)
    yield path, encode_topic(assigned).decode()
    yield f"{path}/partitions", None
    for number, partition in assigned.partitions.items():
        state = encode_partition_state(leader_and_isr(partition.replicas), PREVIOUS_CONTROLLER_EPOCH)
        yield f"{path}/partitions/{number}", None
        yield f"{path}/partitions/{number}/state", state.decode()


def write_lines(znodes: Iterable[Znode], file: Path) -> None:
    """Write znodes in the fleet's format: `["path", "content"]`, one znode a line."""
    with file.open("wb") as lines:
        for znode in znodes:
            lines.write(orjson.dumps(znode) + b"\n")
