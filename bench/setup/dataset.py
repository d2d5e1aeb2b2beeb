"""The cluster that every measurement begins from, as the znodes that a previous controller left.

Topics of 50 partitions, three replicas each, round robin over six brokers. Broker 6 was restarted some time ago and its
leaders did not go back: broker 1 leads them besides its own, a third of all. All replicas are in sync.

One more topic, `probed`, is no part of what is measured: a probe changes its ISR to and fro meanwhile.
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
    """The name of the n-th topic, counted from 0."""
    return TopicName(f"topic-{number:05}")


def topic_path(topic: TopicName) -> str:
    """The znode of a topic's assignment."""
    return f"/brokers/topics/{topic}"


def replicas_of(partition: int) -> tuple[BrokerId, ...]:
    """Where a partition's replicas are: those of neighbours are one broker further."""
    return tuple(BROKERS[(partition + step) % len(BROKERS)] for step in range(_REPLICAS))


def assignment(topic: TopicName) -> TopicAssignment:
    """A topic's partitions. The numbers of a topic's partitions go on where a multiple of six was, so that brokers come
    out even over 50 partitions as well as over thousands."""
    offset = int(topic.rpartition("-")[2]) * PARTITIONS_OF_A_TOPIC
    return TopicAssignment(
        topic_id=TopicId(uuid.uuid5(_NAMESPACE, topic)),
        partitions={
            PartitionId(number): ReplicaAssignment(replicas=replicas_of(offset + number))
            for number in range(PARTITIONS_OF_A_TOPIC)
        },
    )


def leader_and_isr(replicas: tuple[BrokerId, ...]) -> LeaderAndIsr:
    """A partition at rest. The leaders of the broker that was restarted are with the next replica."""
    moved = replicas[0] == _RESTARTED
    return LeaderAndIsr(
        leader=replicas[1] if moved else replicas[0], isr=replicas, leader_epoch=LeaderEpoch(int(moved))
    )


def dataset(partitions: int) -> Iterator[Znode]:
    """All znodes, parents first. Raises `ValueError` where that is no whole number of topics."""
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
    """How many topics that many partitions are. Raises `ValueError` where that is no whole number."""
    if partitions < PARTITIONS_OF_A_TOPIC or partitions % PARTITIONS_OF_A_TOPIC:
        raise ValueError(f"{partitions} partitions: a multiple of {PARTITIONS_OF_A_TOPIC} is needed")
    return partitions // PARTITIONS_OF_A_TOPIC


def topic_znodes(topic: TopicName, assigned: TopicAssignment) -> Iterator[Znode]:
    """A topic and the states of its partitions."""
    path = topic_path(topic)
    yield path, encode_topic(assigned).decode()
    yield f"{path}/partitions", None
    for number, partition in assigned.partitions.items():
        state = encode_partition_state(leader_and_isr(partition.replicas), PREVIOUS_CONTROLLER_EPOCH)
        yield f"{path}/partitions/{number}", None
        yield f"{path}/partitions/{number}/state", state.decode()


def write_lines(znodes: Iterable[Znode], file: Path) -> None:
    """As the fleet reads them: `["path", "content"]`, one znode a line."""
    with file.open("wb") as lines:
        for znode in znodes:
            lines.write(orjson.dumps(znode) + b"\n")
