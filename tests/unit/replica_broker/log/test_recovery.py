"""After an unclean end a log has all flushed batches, and perhaps some of the next ones, in order and whole."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from controller_core.model.ids import BrokerId, LeaderEpoch
from replica_broker.log.directories import LogDirectories
from replica_broker.log.errors import LogError, UnsupportedFormat
from replica_broker.log.log import Log
from replica_broker.log.record_batches import MAGIC_AT, read_batches
from simulation.replicas.disk import Crashed, SimulatedDisk
from tests.unit.replica_broker.log.batches import EPOCH, NOW_MS, ManualClock, batch, old_message, replicate
from tests.unit.replica_broker.log.logs import DIRECTORY, FOLDER, ORDERS_0, SMALL, all_bytes, offsets, open_log

FIRST = FOLDER / f"{0:020d}.log"


def make_log(count: int) -> tuple[SimulatedDisk, Log]:
    disk = SimulatedDisk()
    log = open_log(disk)
    for number in range(count):
        log.append_as_leader(batch(b"x" * 50, times_ms=[NOW_MS + number]), EPOCH, NOW_MS)
    return disk, log


@given(st.integers(0, 400))
def test_a_file_that_was_cut_anywhere_keeps_its_whole_batches(size: int) -> None:
    disk, log = make_log(3)
    content = all_bytes(log)
    disk.damage(FIRST, content[:size])
    again = open_log(disk)
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
        replicate(b"a", at=3)[:-1] + b"?",
        replicate(b"a", at=3)[:8] + b"\x7f\xff\xff\xff" + replicate(b"a", at=3)[12:],
        replicate(b"a", at=2),
        replicate(b"a", at=2**40),
        old_message(1)[:-1] + b"?",
    ],
)
def test_what_is_no_batch_that_follows_is_cut_off(tail: bytes) -> None:
    disk, log = make_log(3)
    content = all_bytes(log)
    disk.damage(FIRST, content + tail)
    assert all_bytes(open_log(disk)) == content
    assert disk.read_whole(FIRST) == content


@pytest.mark.parametrize("magic", [0, 1])
def test_whole_messages_of_an_older_format_are_refused_and_stay_as_they_are(magic: int) -> None:
    disk, _ = make_log(0)
    disk.damage(FIRST, old_message(magic))
    with pytest.raises(UnsupportedFormat):
        open_log(disk)
    assert disk.read_whole(FIRST) == old_message(magic)


def test_segments_behind_one_that_lost_something_go() -> None:
    disk, log = make_log(9)
    assert log.segments_count == 3
    content = disk.read_whole(FIRST)
    for damaged in (content[:-1], content[: len(content) // 3]):
        copied = disk.restart(lambda _, unflushed: unflushed)
        copied.damage(FIRST, damaged)
        again = open_log(copied)
        assert offsets(again) == [(number, number) for number in range(again.log_end_offset)]
        assert (again.segments_count, again.log_end_offset) == (1, len(damaged) * 3 // len(content))


def test_segments_before_the_recovery_point_are_not_read_nor_their_headers() -> None:
    disk, log = make_log(9)
    log.close()
    damaged = bytearray(disk.read_whole(FIRST))
    damaged[MAGIC_AT] = 9
    disk.damage(FIRST, bytes(damaged))
    with capture_logs() as said:
        assert open_log(disk, recovery_point=3).log_end_offset == 9
    assert said == []
    assert open_log(disk, recovery_point=2).log_end_offset == 0


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize(
    "content", [None, b"", b"\0" * 5000, b"\xff" * 24, b"\x7f" * 36, b"\0\0\0\1\x7f\xff\xff\xff" * 3]
)
@pytest.mark.parametrize("is_clean", [True, False])
def test_indexes_that_are_gone_or_garbage_lead_nobody_astray(
    suffix: str, content: bytes | None, is_clean: bool
) -> None:
    disk, log = make_log(8)
    expected = all_bytes(log)
    log.close()
    for base in (0, 3, 6):
        path = FOLDER / f"{base:020d}{suffix}"
        disk.remove(path)
        if content is not None:
            disk.damage(path, content)
    again = open_log(disk, is_clean=is_clean, recovery_point=8)
    assert all_bytes(again) == expected
    again.append_as_leader(batch(b"y"), EPOCH, NOW_MS + 99)
    assert again.log_end_offset == 9
    assert again.find_offset(NOW_MS + 4, below=9) == (4, NOW_MS + 4)


def test_what_others_left_in_the_folder_is_cleared_away_or_left_alone() -> None:
    disk, log = make_log(9)
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
    others = {"99999999999999999999.log", "notes.log", f"{3:020d}.txnindex"}
    for name in others:
        disk.damage(FOLDER / name, b"?")
    again = open_log(disk, is_clean=True)
    assert again.log_end_offset == 9
    assert set(disk.list(FOLDER)) == {*names, *others}
    again.truncate_to(3)
    assert not disk.exists(FOLDER / f"{3:020d}.txnindex")


_FILES = [
    *(f"{base:020d}{suffix}" for base in (0, 3, 6) for suffix in (".log", ".index", ".timeindex")),
    "leader-epoch-checkpoint",
]


@given(
    damages=st.lists(
        st.tuples(
            st.sampled_from(_FILES), st.integers(0, 500), st.one_of(st.none(), st.binary(min_size=1, max_size=20))
        ),
        min_size=1,
        max_size=4,
    ),
    is_clean=st.booleans(),
    offset=st.integers(0, 9),
    time_ms=st.integers(NOW_MS - 1, NOW_MS + 10),
)
def test_whatever_the_files_are_a_log_opens_and_gives_batches_or_an_error_that_says_why(
    damages: list[tuple[str, int, bytes | None]], is_clean: bool, offset: int, time_ms: int
) -> None:
    disk, log = make_log(8)
    log.close()
    for name, at, written in damages:
        content = disk.read_whole(FOLDER / name)
        at = min(at, len(content))
        disk.damage(FOLDER / name, content[:at] + (written + content[at + len(written) :] if written else b""))
    try:
        again = open_log(disk, is_clean=is_clean)
    except UnsupportedFormat:
        return
    uses: list[Callable[[], object]] = [
        lambda: all_bytes(again),
        lambda: again.read(min(offset, again.log_end_offset), 1000, below=again.log_end_offset),
        lambda: again.find_offset(time_ms, below=again.log_end_offset),
        lambda: again.find_latest_offset(below=again.log_end_offset),
        lambda: again.truncate_to(offset),
        lambda: again.append_as_leader(batch(b"y"), EPOCH, NOW_MS),
        lambda: again.delete_old_segments(NOW_MS + 10**12, again.log_end_offset),
        again.close,
    ]
    for use in uses:
        with suppress(LogError):
            use()
    if not is_clean:
        assert all(it.records_count for it in read_batches(disk.read_whole(max_log(disk))))


def max_log(disk: SimulatedDisk) -> PurePath:
    """The last segment's file."""
    return FOLDER / max(name for name in disk.list(FOLDER) if name.endswith(".log"))


_steps = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 150)),
    st.tuples(st.just("append"), st.integers(0, 150)),
    st.tuples(st.just("flush"), st.just(0)),
    st.tuples(st.just("epoch"), st.integers(1, 3)),
    st.tuples(st.just("cut"), st.integers(1, 6)),
)


@dataclass(slots=True)
class Course:
    """The actions of a process on a log before the machine crashes, and the records that must survive."""

    appended: list[bytes] = field(default_factory=list)
    flushed: int = 0
    epoch: LeaderEpoch = EPOCH

    def play(self, disk: SimulatedDisk, steps: list[tuple[str, int]]) -> None:
        directories = directories_on(disk)
        log = directories.open_log(ORDERS_0, None, SMALL)
        for kind, number in steps:
            if kind == "append":
                self.appended.append(replicate(b"x" * number, at=log.log_end_offset, epoch=self.epoch))
                log.append_as_leader(batch(b"x" * number), self.epoch, NOW_MS)
            elif kind == "flush":
                log.flush()
                self.flushed = len(self.appended)
                directories.checkpoint_recovery_points()
            elif kind == "cut":
                kept = max(len(self.appended) - number, 0)
                self.flushed = min(self.flushed, kept)
                log.truncate_to(kept)
                del self.appended[kept:]
            else:
                self.epoch = LeaderEpoch(self.epoch + number)
                log.begin_epoch(self.epoch)
        directories.close()
        self.flushed = len(self.appended)


def directories_on(disk: SimulatedDisk) -> LogDirectories:
    return LogDirectories.open(
        disk, [DIRECTORY], broker_id=BrokerId(1), cluster_id="c", config_of=lambda _: SMALL, clock=ManualClock()
    )


@given(st.lists(_steps, max_size=14), st.integers(0, 60), st.integers(0, 400), st.data())
def test_after_a_crash_at_any_write_there_is_a_prefix_of_what_was_appended_with_all_that_was_flushed(
    steps: list[tuple[str, int]], crash_at: int, torn_bytes: int, data: st.DataObject
) -> None:
    disk, course = SimulatedDisk(), Course()
    disk.crash_at(crash_at, kept_bytes=torn_bytes)
    with suppress(Crashed):
        course.play(disk, steps)
    after = disk.restart(
        lambda _, unflushed: data.draw(st.one_of(st.none(), st.just(0), st.integers(0, unflushed), st.just(unflushed)))
    )
    directories = directories_on(after)
    log = directories.open_log(ORDERS_0, None, SMALL)
    found = all_bytes(log)
    batches = list(read_batches(found))
    assert b"".join(course.appended).startswith(found)
    assert len(batches) == log.log_end_offset >= course.flushed
    assert log.latest_epoch == max((it.leader_epoch for it in batches), default=None)
    log.append_as_leader(batch(b"after"), course.epoch, NOW_MS)
    directories.close()
    again = directories_on(after).logs[ORDERS_0]
    assert all_bytes(again) == found + replicate(b"after", at=len(batches), epoch=course.epoch)
