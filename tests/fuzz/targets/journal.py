"""Segments of a journal: read line by line, checked, and folded to a state that is compared with their checksums."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import UUID

from controller_core.journal.batches import Alive, Context, Elected, Resigned, Snapshot, StateCopy, TopicCopy
from controller_core.journal.fold import fold
from controller_core.journal.reader import read as read_journal
from controller_core.journal.segments import SUFFIX, heal
from controller_core.model.ids import (
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    PartitionEpoch,
    PartitionId,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import Broker, LeaderAndIsr, PartitionState, ReplicaAssignment
from tests.fuzz.target import Target
from tests.unit.journal.memory import MemoryJournal

_FOLDER: Final = tempfile.TemporaryDirectory(prefix="kontroller-fuzz-")
_SEGMENT: Final = Path(_FOLDER.name) / f"0000000001-0000000000{SUFFIX}"


def _records() -> list[bytes]:
    """Return the lines of a short term."""
    context = Context(
        cluster_id="a-cluster", controller_id=BrokerId(1), controller_epoch=ControllerEpoch(3),
        event_time_us=1_700_000_000_000_000, cause="controller_failover", correlation_id="3-1",
    )  # fmt: skip
    partition, topic = TopicPartition(TopicName("orders"), PartitionId(0)), TopicId(UUID(int=7))
    assignment = ReplicaAssignment(replicas=(BrokerId(1), BrokerId(2)))
    leadership = PartitionState(
        leader_and_isr=LeaderAndIsr(leader=BrokerId(1), isr=(BrokerId(1), BrokerId(2))),
        controller_epoch=ControllerEpoch(3), partition_epoch=PartitionEpoch(4),
    )  # fmt: skip
    state = StateCopy(
        brokers={number: Broker(id=number, epoch=BrokerEpoch(9), endpoints=()) for number in map(BrokerId, (1, 2))},
        topics={partition.topic: TopicCopy(topic_id=topic, czxid=11, partitions={partition.partition: assignment})},
        states={partition: leadership},
    )
    journal = MemoryJournal()
    for batch in (
        Elected(context=context), Snapshot(context=context, state=state), Alive(context=context),
        Resigned(context=context, reason="the process is stopping"),
    ):  # fmt: skip
        journal.append(batch)
    return journal.lines


def examples() -> Iterator[bytes]:
    lines = _records()
    yield b"".join(lines)
    yield b"".join(reversed(lines))
    yield from lines
    yield lines[0][:-1]


def read(data: bytes) -> None:
    _SEGMENT.write_bytes(data)
    fold(read_journal(_SEGMENT.parent))
    heal(_SEGMENT)
    healed = _SEGMENT.read_bytes()
    assert data.startswith(healed)
    assert not healed or healed.endswith(b"\n")


TARGET: Final = Target(name="journal", examples=examples, read=read, most_bytes=16384)
