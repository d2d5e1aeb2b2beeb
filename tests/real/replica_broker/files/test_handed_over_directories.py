"""Our broker uses a stock broker's log directory, and hands it back: after a clean shutdown of either, and after none."""

import pytest

from controller_core.model.ids import LeaderEpoch
from devcluster.clients.tools import TOPICS
from replica_broker.disk.disk import DirectoryInUse
from replica_broker.log.directories import LogDirectories
from replica_broker.log.record_batches import read_batches
from tests.real.conftest import StartKafka
from tests.real.replica_broker.files.handing_over import ORDERS_0, command, consume, produce, take_over
from tests.unit.replica_broker.log.batches import batch


def read_by_us(directories: LogDirectories) -> int:
    """Return the number of records in the log, and assert that all of its batches are complete."""
    log = directories.logs[ORDERS_0]
    count, offset = 0, log.log_start_offset
    while data := log.read(offset, 1000, below=log.log_end_offset):
        for it in read_batches(data):
            count += it.records_count
            offset = it.next_offset
    assert offset == log.log_end_offset
    return count


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_directory_goes_from_a_stock_broker_to_ours_and_back(start_kafka: StartKafka, is_clean: bool) -> None:
    cluster = start_kafka(brokers=1, properties={"log.segment.bytes": 4_000, "log.index.interval.bytes": 200})
    broker = cluster.broker(1)
    command(cluster, TOPICS, "--create", "--topic", "orders", "--partitions", "1")
    values = [f"stock-{number}" for number in range(200)]
    produce(cluster, values)
    with pytest.raises(DirectoryInUse):
        take_over(cluster)
    broker.stop() if is_clean else broker.kill()
    directories = take_over(cluster)
    assert directories.find_topic_id(ORDERS_0) is not None
    assert directories.offline == frozenset()
    assert read_by_us(directories) == 200
    log = directories.logs[ORDERS_0]
    epoch = log.latest_epoch
    assert epoch is not None
    for number in range(100):
        appended = log.append_as_leader(batch(f"ours-{number}".encode()), LeaderEpoch(epoch), 0)
        assert appended.first_offset == 200 + number
        values.append(f"ours-{number}")
    if is_clean:
        directories.close({ORDERS_0: log.log_end_offset})
    else:
        directories.checkpoint_high_watermarks({ORDERS_0: log.log_end_offset})
        directories.abandon()
    broker.start()
    produce(cluster, ["last"])
    assert consume(cluster, 301) == [*values, "last"]
    broker.stop()
    assert read_by_us(take_over(cluster)) == 301
