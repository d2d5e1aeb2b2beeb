"""The ends of transactions, as the bytes that Kafka's leaders write."""

import pytest

from replica_broker.log.errors import InvalidProducerEpoch
from replica_broker.log.producers.markers import MARKER_BYTES, EndOfTransaction, encode_marker
from replica_broker.log.record_batches import read_batches
from simulation.replicas.disk import SimulatedDisk
from tests.unit.replica_broker.log.batches import CONTROL, EPOCH, NOW_MS, TRANSACTIONAL, batch, record, replicate
from tests.unit.replica_broker.log.logs import open_log

COMMIT = EndOfTransaction(producer_id=7, producer_epoch=2, coordinator_epoch=300, is_commit=True)


@pytest.mark.parametrize(("is_commit", "kind"), [(True, b"\0\x01"), (False, b"\0\0")])
def test_a_marker_is_a_control_batch_of_one_record(is_commit: bool, kind: bytes) -> None:
    end = EndOfTransaction(producer_id=7, producer_epoch=2, coordinator_epoch=300, is_commit=is_commit)
    expected = batch(
        b"marker",
        producer_id=7,
        producer_epoch=2,
        attributes=CONTROL | TRANSACTIONAL,
        records=record(b"\0\0" + (300).to_bytes(4), key=b"\0\0" + kind),
    )
    assert encode_marker(end, NOW_MS) == expected
    assert len(expected) == MARKER_BYTES == 78


def test_a_marker_comes_next_in_the_log_and_later_batches_of_its_producer_go_on() -> None:
    log = open_log(SimulatedDisk())
    log.append_as_follower(replicate(b"a", at=0))
    appended = log.append_marker(COMMIT, EPOCH, NOW_MS)
    assert (appended.first_offset, log.log_end_offset) == (1, 2)
    (marker,) = read_batches(log.read(1, 1000, below=2))
    assert (marker.is_control, marker.is_transactional, marker.leader_epoch) == (True, True, EPOCH)
    log.append_as_leader(batch(b"b", producer_id=7, producer_epoch=2, base_sequence=4), EPOCH, NOW_MS)
    assert log.log_end_offset == 3


def test_the_end_of_what_a_producer_did_before_it_began_anew_is_refused() -> None:
    log = open_log(SimulatedDisk())
    log.append_as_leader(batch(b"a", producer_id=7, producer_epoch=3, base_sequence=0), EPOCH, NOW_MS)
    with pytest.raises(InvalidProducerEpoch):
        log.append_marker(COMMIT, EPOCH, NOW_MS)
    assert log.log_end_offset == 1
