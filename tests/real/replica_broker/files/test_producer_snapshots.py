"""Snapshots of producers go from a stock broker to ours and back, and Kafka's own tool reads ours."""

import re
import time
from pathlib import Path
from typing import Final

import pytest

from controller_core.model.ids import LeaderEpoch
from devcluster.clients.tools import TOPICS, TRANSACTIONS, run_tool
from replica_broker.disk.local_disk import LocalDisk
from replica_broker.log.config import LogConfig
from replica_broker.log.log import Log
from tests.real.conftest import StartKafka
from tests.real.replica_broker.files.handing_over import ORDERS_0, command, produce, take_over
from tests.real.replica_broker.files.test_log_files import DUMP_LOG_SEGMENTS
from tests.unit.replica_broker.log.batches import EPOCH, NOW_MS, batch

pytestmark = pytest.mark.real

_ENTRY: Final = re.compile(
    r"producerId: (\d+) producerEpoch: (\d+) .*firstSequence: (\d+) lastSequence: (\d+) lastOffset: (\d+) "
)


def dump_producers(snapshot: Path) -> list[tuple[int, ...]]:
    """Return the producers in the tool's output: id, epoch, first and last sequence, and last offset of each."""
    tool = run_tool(DUMP_LOG_SEGMENTS, "--files", str(snapshot))
    assert tool.returncode == 0, tool.stdout + tool.stderr
    assert "Exception" not in tool.stdout + tool.stderr
    return [tuple(map(int, entry)) for entry in _ENTRY.findall(tool.stdout)]


def list_producers(log: Log) -> list[tuple[int, ...]]:
    """Return our log's state of producers, in the same order."""
    return [
        (producer_id, state.epoch, last.base_sequence, last.last_sequence, last.last_offset)
        for producer_id, state in log.producers
        for last in list(state.batches)[-1:]
    ]


def test_kafkas_tool_prints_our_snapshots(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    log = Log.open(LocalDisk(), folder, LogConfig(segment_bytes=8_000, producer_id_expiration_ms=10**15))
    for number in range(100):
        data = batch(b"a" * 100, b"b", producer_id=number % 3, producer_epoch=2, base_sequence=number // 3 * 2)
        log.append_as_leader(data, EPOCH, NOW_MS)
    log.close()
    snapshots = sorted(folder.glob("*.snapshot"))
    assert [int(path.stem) for path in snapshots] == [
        *(int(path.stem) for path in sorted(folder.glob("*.log"))[1:]),
        200,
    ]
    assert (
        sorted(dump_producers(snapshots[-1]))
        == sorted(list_producers(log))
        == [
            (0, 2, 66, 67, 199),
            (1, 2, 64, 65, 195),
            (2, 2, 64, 65, 197),
        ]
    )
    assert len(dump_producers(snapshots[0])) == 3


def test_producers_go_on_where_they_were_when_a_directory_goes_from_a_stock_broker_to_ours_and_back(
    start_kafka: StartKafka,
) -> None:
    cluster = start_kafka(brokers=1, properties={"log.segment.bytes": 4_000})
    broker = cluster.broker(1)
    command(cluster, TOPICS, "--create", "--topic", "orders", "--partitions", "1")
    produce(cluster, [f"stock-{number}" for number in range(200)])
    broker.stop()
    folder = broker.log_folder / str(ORDERS_0)
    theirs = dump_producers(max(folder.glob("*.snapshot")))
    directories = take_over(cluster)
    log = directories.logs[ORDERS_0]
    assert list_producers(log) == theirs
    ((producer_id, epoch, _, last_sequence, last_offset),) = theirs
    assert last_offset == 199
    now_ms = time.time_ns() // 1_000_000
    written = batch(
        b"ours",
        times_ms=[now_ms],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=last_sequence + 1,
    )
    assert log.append_as_leader(written, LeaderEpoch(log.latest_epoch or 0), now_ms).first_offset == 200
    directories.close({ORDERS_0: log.log_end_offset})
    broker.start()
    described = command(cluster, TRANSACTIONS, "describe-producers", "--topic", "orders", "--partition", "0")
    heading, row = described.splitlines()
    assert heading.split()[:3] == ["ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch"]
    assert row.split()[:4] == [str(producer_id), str(epoch), "-1", str(last_sequence + 1)]
