"""The start offset of each leader epoch, and the answers to followers that ask."""

import pytest

from controller_core.model.ids import LeaderEpoch
from simulation.replicas.disk import SimulatedDisk
from tests.unit.replica_broker.log.batches import NOW_MS, batch, replicate
from tests.unit.replica_broker.log.logs import FOLDER, open_log

CHECKPOINT = FOLDER / "leader-epoch-checkpoint"


def epoch(number: int) -> LeaderEpoch:
    return LeaderEpoch(number)


def read_checkpoint(disk: SimulatedDisk) -> bytes:
    return disk.read_whole(CHECKPOINT)


def test_the_end_of_an_epoch_is_where_the_next_one_begins() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    assert log.find_epoch_end(epoch(0)) == (-1, -1)
    for at, leader in ((0, 2), (1, 2), (2, 5), (3, 9)):
        log.append_as_leader(batch(b"a"), epoch(leader), NOW_MS)
        assert log.log_end_offset == at + 1
    assert log.latest_epoch == 9
    asked = {number: log.find_epoch_end(epoch(number)) for number in (-1, 0, 2, 3, 5, 8, 9, 10)}
    assert asked == {
        -1: (-1, -1),
        0: (0, 0),
        2: (2, 2),
        3: (2, 2),
        5: (5, 3),
        8: (5, 3),
        9: (9, 4),
        10: (-1, -1),
    }
    assert read_checkpoint(disk) == b"0\n3\n2 0\n5 2\n9 3\n"


def test_an_epoch_that_wrote_nothing_goes_with_the_next_one_and_where_the_log_is_cut_at_its_end() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    log.append_as_leader(batch(b"a"), epoch(1), NOW_MS)
    log.begin_epoch(epoch(2))
    assert read_checkpoint(disk) == b"0\n2\n1 0\n2 1\n"
    log.begin_epoch(epoch(3))
    assert read_checkpoint(disk) == b"0\n2\n1 0\n3 1\n"
    log.begin_epoch(epoch(3))
    assert log.find_epoch_end(epoch(2)) == (1, 1)
    assert log.truncate_to(1) == 1
    assert read_checkpoint(disk) == b"0\n1\n1 0\n"
    assert log.latest_epoch == 1


def test_a_follower_learns_epochs_of_what_it_fetches() -> None:
    log = open_log(SimulatedDisk())
    log.append_as_follower(
        replicate(b"a", at=0, epoch=1) + replicate(b"b", at=1, epoch=4) + replicate(b"c", at=2, epoch=4)
    )
    assert (log.find_epoch_end(epoch(1)), log.latest_epoch) == ((1, 1), 4)


def test_epochs_are_cut_with_the_log_at_both_ends() -> None:
    disk = SimulatedDisk()
    log = open_log(disk, retention_ms=10)
    for number in range(9):
        log.append_as_leader(batch(b"x" * 50, times_ms=[NOW_MS + number]), epoch(number), NOW_MS)
    log.truncate_to(7)
    assert log.latest_epoch == 6
    log.delete_old_segments(NOW_MS + 15, high_watermark=7)
    assert log.log_start_offset == 3
    assert read_checkpoint(disk) == b"0\n4\n3 3\n4 4\n5 5\n6 6\n"
    log.close()
    assert open_log(disk, is_clean=True).find_epoch_end(epoch(4)) == (4, 5)


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe", b"0\n1\n", b"1\n0\n", b"0\n2\n1 0\n0 1\n", b"0\n1\n1 99999999999999999999\n", b"0\n1\n1 0 \n"],
)
def test_a_checkpoint_that_makes_no_sense_is_made_anew_from_the_batches(content: bytes) -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    for leader in (1, 1, 4):
        log.append_as_leader(batch(b"a"), epoch(leader), NOW_MS)
    log.close()
    disk.damage(CHECKPOINT, content)
    again = open_log(disk, is_clean=True)
    assert (again.find_epoch_end(epoch(1)), again.latest_epoch) == ((1, 2), 4)
    assert read_checkpoint(disk) == b"0\n2\n1 0\n4 2\n"


def test_after_a_crash_no_epoch_is_of_batches_that_are_gone() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    log.append_as_leader(batch(b"a"), epoch(1), NOW_MS)
    log.flush()
    log.append_as_leader(batch(b"b"), epoch(2), NOW_MS)
    again = open_log(disk.restart())
    assert (again.log_end_offset, again.latest_epoch) == (1, 1)
