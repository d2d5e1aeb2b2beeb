"""After an unclean end a log has what was flushed, and perhaps more: what was appended first, in whole batches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replica_broker.log.errors import UnsupportedFormat
from replica_broker.log.log import Log
from replica_broker.log.record_batches import batches_in
from simulation.disk import Crashed, SimulatedDisk
from tests.unit.replica_broker.log.batches import EPOCH, NOW_MS, batch, old_message, replicated
from tests.unit.replica_broker.log.logs import FOLDER, all_bytes, offsets, opened

FIRST = FOLDER / f"{0:020d}.log"


def of_batches(count: int) -> tuple[SimulatedDisk, Log]:
    disk = SimulatedDisk()
    log = opened(disk)
    for number in range(count):
        log.append_as_leader(batch(b"x" * 50, times_ms=[NOW_MS + number]), EPOCH, NOW_MS)
    return disk, log


@given(st.integers(0, 400))
def test_a_file_that_was_cut_anywhere_keeps_its_whole_batches(size: int) -> None:
    disk, log = of_batches(3)
    content = all_bytes(log)
    disk.damage(FIRST, content[:size])
    again = opened(disk)
    whole = min(size * 3 // len(content), 3)
    assert again.log_end_offset == whole
    assert disk.read_whole(FIRST) == content[: whole * len(content) // 3]
    again.append_as_leader(batch(b"after"), EPOCH, NOW_MS)
    assert again.log_end_offset == whole + 1


@pytest.mark.parametrize(
    "tail",
    [
        b"\0" * 1000,
        b"\xff" * 1000,
        replicated(b"a", at=3)[:-1] + b"?",
        replicated(b"a", at=3)[:8] + b"\x7f\xff\xff\xff" + replicated(b"a", at=3)[12:],
        replicated(b"a", at=2),
        replicated(b"a", at=2**40),
        old_message(1)[:-1] + b"?",
    ],
)
def test_what_is_no_batch_that_follows_is_cut_off(tail: bytes) -> None:
    disk, log = of_batches(3)
    content = all_bytes(log)
    disk.damage(FIRST, content + tail)
    assert all_bytes(opened(disk)) == content
    assert disk.read_whole(FIRST) == content


@pytest.mark.parametrize("magic", [0, 1])
def test_whole_messages_of_an_older_format_are_refused_and_stay_as_they_are(magic: int) -> None:
    disk, _ = of_batches(0)
    disk.damage(FIRST, old_message(magic))
    with pytest.raises(UnsupportedFormat):
        opened(disk)
    assert disk.read_whole(FIRST) == old_message(magic)


def test_segments_behind_one_that_lost_something_go() -> None:
    disk, log = of_batches(9)
    assert log.segments_count == 3
    content = disk.read_whole(FIRST)
    for damaged in (content[:-1], content[: len(content) // 3]):
        copied = disk.restart(lambda _, unflushed: unflushed)
        copied.damage(FIRST, damaged)
        again = opened(copied)
        assert offsets(again) == [(number, number) for number in range(again.log_end_offset)]
        assert (again.segments_count, again.log_end_offset) == (1, len(damaged) * 3 // len(content))


def test_what_is_before_the_recovery_point_is_not_read() -> None:
    disk, log = of_batches(9)
    log.close()
    damaged = bytearray(disk.read_whole(FIRST))
    damaged[-1] ^= 1
    disk.damage(FIRST, bytes(damaged))
    assert opened(disk, recovery_point=3).log_end_offset == 9
    assert opened(disk, recovery_point=2).log_end_offset == 2


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize(
    "content", [None, b"", b"\0" * 5000, b"\xff" * 24, b"\x7f" * 36, b"\0\0\0\1\x7f\xff\xff\xff" * 3]
)
@pytest.mark.parametrize("is_clean", [True, False])
def test_indexes_that_are_gone_or_garbage_lead_nobody_astray(
    suffix: str, content: bytes | None, is_clean: bool
) -> None:
    disk, log = of_batches(8)
    expected = all_bytes(log)
    log.close()
    for base in (0, 3, 6):
        path = FOLDER / f"{base:020d}{suffix}"
        disk.remove(path)
        if content is not None:
            disk.damage(path, content)
    again = opened(disk, is_clean=is_clean, recovery_point=8)
    assert all_bytes(again) == expected
    again.append_as_leader(batch(b"y"), EPOCH, NOW_MS + 99)
    assert again.log_end_offset == 9
    assert again.offset_of_timestamp(NOW_MS + 4, below=9) == (4, NOW_MS + 4)


def test_what_others_left_in_the_folder_is_cleared_away_or_left_alone() -> None:
    disk, log = of_batches(9)
    log.close()
    names = disk.list(FOLDER)
    for name in (
        f"{0:020d}.log.deleted",
        f"{0:020d}.index.cleaned",
        f"{7:020d}.index",
        f"{3:020d}.snapshot",
        "leader-epoch-checkpoint.tmp",
    ):
        disk.damage(FOLDER / name, b"?")
    for name in ("99999999999999999999.log", "notes.log"):
        disk.damage(FOLDER / name, b"?")
    assert opened(disk, is_clean=True).log_end_offset == 9
    assert set(disk.list(FOLDER)) == {*names, "99999999999999999999.log", "notes.log"}


_appends = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 150)),
        st.tuples(st.just("flush"), st.just(0)),
        st.tuples(st.just("epoch"), st.integers(1, 3)),
    ),
    max_size=14,
)


@given(_appends, st.integers(0, 60), st.integers(0, 400), st.data())
def test_after_a_crash_at_any_write_there_is_a_prefix_of_what_was_appended_with_all_that_was_flushed(
    steps: list[tuple[str, int]], crash_at: int, torn_bytes: int, data: st.DataObject
) -> None:
    disk = SimulatedDisk()
    disk.crash_at(crash_at, kept_bytes=torn_bytes)
    appended, flushed, epoch = b"", 0, EPOCH
    recovery_point = 0
    try:
        log = opened(disk)
        for kind, number in steps:
            if kind == "append":
                values = [b"x" * number]
                one = replicated(*values, at=log.log_end_offset, epoch=epoch)
                appended += one
                log.append_as_leader(batch(*values), epoch, NOW_MS)
            elif kind == "flush":
                log.flush()
                flushed, recovery_point = len(appended), log.recovery_point
            else:
                epoch = type(epoch)(epoch + number)
        log.close()
        flushed = len(appended)
        disk.crash()
    except Crashed:
        pass
    after = disk.restart(
        lambda _path, unflushed: data.draw(
            st.one_of(st.none(), st.just(0), st.integers(0, unflushed), st.just(unflushed))
        )
    )
    again = opened(after, recovery_point=data.draw(st.sampled_from([0, recovery_point])))
    found = all_bytes(again)
    assert appended.startswith(found)
    assert len(found) >= flushed
    assert again.log_end_offset == sum(1 for _ in batches_in(found))
    latest = max((it.leader_epoch for it in batches_in(found)), default=None)
    assert again.latest_epoch == latest
    again.append_as_leader(batch(b"after"), epoch, NOW_MS)
    again.close()
    assert all_bytes(opened(after, is_clean=True)) == found + replicated(
        b"after", at=again.log_end_offset - 1, epoch=epoch
    )
