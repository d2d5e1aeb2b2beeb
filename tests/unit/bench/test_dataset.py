"""The data set of the measurements is what a controller leaves: Kontroller's codecs read it."""

import json
from collections import Counter
from pathlib import Path

import pytest

from bench.setup import dataset
from controller_core.model.ids import PartitionId, TopicPartition
from controller_core.model.metadata import PartitionState
from controller_core.zk.codecs.topics import decode_partition_state, decode_topic
from controller_core.zk.session import SessionId, ZkNode, ZkVersion

PARTITIONS = 600


def write_dataset() -> dict[str, str | None]:
    return dict(dataset.dataset(PARTITIONS))


def node(data: str) -> ZkNode:
    return ZkNode(data=data.encode(), version=ZkVersion(0), czxid=1, mzxid=1, ephemeral_owner=SessionId(0))


def states() -> dict[TopicPartition, PartitionState]:
    """Return the states of all topics except the probed one."""
    znodes = write_dataset()
    found = {}
    for number in range(dataset.topics_of(PARTITIONS)):
        topic = dataset.topic_name(number)
        for partition in range(dataset.PARTITIONS_OF_A_TOPIC):
            key = TopicPartition(topic, PartitionId(partition))
            data = znodes[f"{dataset.topic_path(topic)}/partitions/{partition}/state"]
            assert data is not None
            found[key] = decode_partition_state(key, node(data))
    return found


def test_topics_are_read_back_as_they_were_assigned() -> None:
    znodes = write_dataset()
    topics = [path for path in znodes if path.count("/") == 3 and path.startswith("/brokers/topics/")]
    assert len(topics) == PARTITIONS / dataset.PARTITIONS_OF_A_TOPIC + 1
    for path in topics:
        data = znodes[path]
        assert data is not None
        name = path.rpartition("/")[2]
        if name != dataset.PROBED_TOPIC:
            topic = dataset.topic_name(int(name.rpartition("-")[2]))
            assert decode_topic(topic, data.encode()) == dataset.assignment(topic)


def test_every_broker_has_as_many_replicas_and_one_leads_a_third() -> None:
    found = states()
    replicas = Counter(member for state in found.values() for member in state.leader_and_isr.isr)
    leaders = Counter(state.leader_and_isr.leader for state in found.values())
    assert set(replicas.values()) == {PARTITIONS // 2}
    assert leaders == {1: PARTITIONS // 3, **dict.fromkeys((2, 3, 4, 5), PARTITIONS // 6)}


def test_every_partition_is_at_rest() -> None:
    for key, state in states().items():
        replicas = dataset.assignment(key.topic).partitions[key.partition].replicas
        assert state.leader_and_isr.isr == replicas
        assert state.leader_and_isr.leader in replicas
        assert state.controller_epoch == dataset.PREVIOUS_CONTROLLER_EPOCH


def test_parents_are_written_before_their_children() -> None:
    seen = {""}
    for path in write_dataset():
        assert path.rpartition("/")[0] in seen
        seen.add(path)


def test_lines_are_what_the_fleet_reads(tmp_path: Path) -> None:
    file = tmp_path / "znodes"
    dataset.write_lines([("/a", None), ("/a/b", '{"version":1}')], file)
    assert [json.loads(line) for line in file.read_text().splitlines()] == [["/a", None], ["/a/b", '{"version":1}']]


def test_a_part_of_a_topic_is_refused() -> None:
    with pytest.raises(ValueError, match="a multiple of 50"):
        list(dataset.dataset(70))
