"""Several log directories: their owner, their partitions, and the others go on if one fails."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path, PurePath
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from controller_core.model.ids import BrokerId, PartitionId, TopicId, TopicName, TopicPartition
from replica_broker.disk.disk import DirectoryInUse, Disk, DiskError
from replica_broker.disk.guarded_disk import GuardedDisk
from replica_broker.disk.local_disk import LocalDisk
from replica_broker.log.checkpoints.files import CheckpointFiles
from replica_broker.log.directories import LogDirectories, OfflineDirectory
from replica_broker.log.errors import DirectoryRefused, InconsistentTopicId, LogOffline
from simulation.replicas.disk import SimulatedDisk
from tests.unit.replica_broker.log.batches import EPOCH, NOW_MS, batch, old_message, replicate
from tests.unit.replica_broker.log.logs import ORDERS_0, SMALL, all_bytes, offsets

ONE, OTHER = PurePath("/one"), PurePath("/other")
ORDERS_1 = TopicPartition(TopicName("orders"), PartitionId(1))
ORDERS_ID = TopicId(UUID("11111111-2222-3333-4444-555555555555"))
OTHER_ID = TopicId(UUID("11111111-2222-3333-4444-666666666666"))


class Told(list[OfflineDirectory]):
    """The calls to the owner of the replicas, in its own thread."""

    def __init__(self) -> None:
        super().__init__()
        self._owner = threading.get_ident()

    def append(self, failed: OfflineDirectory) -> None:
        assert threading.get_ident() == self._owner
        super().append(failed)


def load(
    disk: Disk,
    paths: Sequence[PurePath] = (ONE, OTHER),
    *,
    broker_id: int = 1,
    cluster_id: str = "c",
    told: Told | None = None,
) -> LogDirectories:
    on_offline = told.append if told is not None else lambda _: None
    return LogDirectories.open(
        disk,
        paths,
        broker_id=BrokerId(broker_id),
        cluster_id=cluster_id,
        config_of=lambda _: SMALL,
        on_offline=on_offline,
    )


def test_logs_are_made_in_the_directory_with_the_fewest_and_found_again() -> None:
    disk = SimulatedDisk()
    directories = load(disk)
    log = directories.open_log(ORDERS_0, ORDERS_ID, SMALL)
    assert directories.open_log(ORDERS_0, ORDERS_ID, SMALL) is log
    directories.open_log(ORDERS_1, ORDERS_ID, SMALL)
    assert (directories.find_path(ORDERS_0), directories.find_path(ORDERS_1)) == (ONE, OTHER)
    log.append_as_leader(batch(b"a"), EPOCH, NOW_MS)
    assert directories.find_high_watermark(ORDERS_0) is None
    directories.close({ORDERS_0: 1})
    again = load(disk)
    assert again.logs.keys() == {ORDERS_0, ORDERS_1}
    assert (again.find_topic_id(ORDERS_0), again.find_high_watermark(ORDERS_0)) == (ORDERS_ID, 1)
    found = again.find_log(ORDERS_0)
    assert found is not None
    assert offsets(found) == [(0, 0)]


def test_the_files_are_as_kafka_writes_them() -> None:
    disk = SimulatedDisk()
    directories = load(disk)
    log = directories.open_log(ORDERS_0, ORDERS_ID, SMALL)
    log.append_as_leader(batch(b"a", b"b"), EPOCH, NOW_MS)
    directories.close({ORDERS_0: 1})
    assert disk.read_whole(ONE / "meta.properties").splitlines() == [b"version=0", b"broker.id=1", b"cluster.id=c"]
    assert disk.read_whole(ONE / "orders-0/partition.metadata") == b"version: 0\ntopic_id: ERERESIiMzNERFVVVVVVVQ"
    assert disk.read_whole(ONE / "replication-offset-checkpoint") == b"0\n1\norders 0 1\n"
    assert disk.read_whole(ONE / "recovery-point-offset-checkpoint") == b"0\n1\norders 0 2\n"
    assert disk.read_whole(ONE / "log-start-offset-checkpoint") == b"0\n1\norders 0 0\n"
    assert disk.exists(ONE / ".kafka_cleanshutdown")
    again = load(disk)
    assert not disk.exists(ONE / ".kafka_cleanshutdown")
    again.close()


@pytest.mark.parametrize(
    ("broker_id", "cluster_id", "words"),
    [(2, "c", r"broker\.id=1, but this broker has broker\.id=2"), (1, "d", r"cluster\.id=c")],
)
def test_another_broker_s_or_cluster_s_directory_is_refused_in_words(
    broker_id: int, cluster_id: str, words: str
) -> None:
    disk = SimulatedDisk()
    load(disk).close()
    for _ in range(2):  # the lock is given back
        with pytest.raises(DirectoryRefused, match=words):
            load(disk, broker_id=broker_id, cluster_id=cluster_id)


@pytest.mark.parametrize("content", [b"version=1\nnode.id=1\ncluster.id=c\n", b"\xff", b"broker.id=\\uZZZZ"])
def test_a_directory_of_another_kind_is_refused(content: bytes) -> None:
    disk = SimulatedDisk()
    disk.make_folder(ONE)
    disk.damage(ONE / "meta.properties", content)
    with pytest.raises(DirectoryRefused, match=r"meta\.properties"):
        load(disk)


def test_what_else_a_stock_broker_wrote_of_itself_stays() -> None:
    disk = SimulatedDisk()
    disk.make_folder(ONE)
    content = b"#\n#Tue Nov 24 18:36:14 UTC 2026\ncluster.id=c\nversion=0\nbroker.id=1\ndirectory.id=xyz\n"
    disk.damage(ONE / "meta.properties", content)
    load(disk).close()
    assert disk.read_whole(ONE / "meta.properties") == content


def test_a_directory_is_used_by_one_at_a_time() -> None:
    disk = SimulatedDisk()
    first = load(disk)
    with pytest.raises(DirectoryInUse):
        load(disk, [PurePath("/third"), ONE])
    first.close()
    load(disk, [PurePath("/third"), ONE])
    with pytest.raises(DirectoryInUse):
        load(SimulatedDisk(), [ONE, ONE])


def test_another_process_has_the_lock_as_long_as_it_lives(tmp_path: Path) -> None:
    program = f"""
from replica_broker.disk.local_disk import LocalDisk
lock = LocalDisk().lock({str(tmp_path / ".lock")!r})
print("locked", flush=True)
input()
"""
    holder = [sys.executable, "-c", program]
    with subprocess.Popen(holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        with pytest.raises(DirectoryInUse, match="is a broker running on it"):
            load(LocalDisk(), [tmp_path])
        process.kill()
    load(LocalDisk(), [tmp_path]).close()


def test_a_directory_that_fails_takes_its_logs_offline_and_no_others() -> None:
    disk, told = SimulatedDisk(), Told()
    directories = load(disk, told=told)
    failing, living = (directories.open_log(where, None, SMALL) for where in (ORDERS_0, ORDERS_1))
    disk.broken = lambda path: path.startswith("/one")
    with pytest.raises(DiskError, match="Input/output error"):
        failing.append_as_leader(batch(b"a"), EPOCH, NOW_MS)
    disk.broken = lambda _: False
    with pytest.raises(LogOffline):
        failing.append_as_leader(batch(b"a"), EPOCH, NOW_MS)
    assert [(it.path, it.topic_partitions) for it in told] == [(ONE, frozenset({ORDERS_0}))]
    assert directories.offline == {ORDERS_0}
    assert (directories.offline_paths, directories.live_paths) == ((ONE,), (OTHER,))
    assert directories.find_log(ORDERS_0) is None
    with pytest.raises(LogOffline) as raised:
        directories.open_log(ORDERS_0, None, SMALL)
    assert raised.value.error_code is ErrorCode.kafka_storage_error
    living.append_as_leader(batch(b"a"), EPOCH, NOW_MS)
    directories.checkpoint_high_watermarks({ORDERS_0: 1, ORDERS_1: 1})
    directories.close()
    assert (disk.exists(ONE / ".kafka_cleanshutdown"), disk.exists(OTHER / ".kafka_cleanshutdown")) == (False, True)
    assert load(disk).find_high_watermark(ORDERS_1) == 1


@pytest.mark.parametrize("broken", ["/one/orders-0", "/one/recovery-point-offset-checkpoint"])
async def test_what_fails_in_another_thread_is_told_in_the_owner_s(broken: str) -> None:
    disk, told = SimulatedDisk(), Told()
    directories = load(disk, told=told)
    for where in (ORDERS_0, ORDERS_1):
        directories.open_log(where, None, SMALL).append_as_leader(batch(b"a"), EPOCH, NOW_MS)
    disk.broken = lambda path: path.startswith(broken)
    await directories.flush_in_background()
    assert [it.path for it in told] == [ONE]
    assert disk.read_whole(OTHER / "recovery-point-offset-checkpoint") == b"0\n1\norders 1 1\n"


async def test_the_event_loop_goes_on_while_checkpoints_are_written() -> None:
    written_by: list[int] = []
    disk = SimulatedDisk()
    directories = load(disk)
    directories.open_log(ORDERS_0, None, SMALL).append_as_leader(batch(b"a"), EPOCH, NOW_MS)

    def notice(path: str) -> bool:
        written_by.extend([threading.get_ident()] if path.endswith("checkpoint") else [])
        return False

    disk.broken = notice
    await directories.checkpoint_in_background({ORDERS_0: 1})
    assert written_by
    assert threading.get_ident() not in written_by
    assert disk.read_whole(ONE / "replication-offset-checkpoint") == b"0\n1\norders 0 1\n"


def test_a_checkpoint_that_is_written_late_replaces_no_later_one() -> None:
    disk = SimulatedDisk()
    disk.make_folder("/one")
    files = CheckpointFiles(GuardedDisk(disk, lambda _: None), ONE)
    before = files.prepare("points", {ORDERS_0: 9})
    files.write("points", {ORDERS_0: 2})
    files.write_in_background(before)
    assert disk.read_whole(ONE / "points") == b"0\n1\norders 0 2\n"
    files.write_in_background(files.prepare("points", {ORDERS_0: 3}))
    assert disk.read_whole(ONE / "points") == b"0\n1\norders 0 3\n"


def test_a_directory_that_fails_at_the_start_is_offline_and_all_of_them_are_an_error() -> None:
    disk, told = SimulatedDisk(), Told()
    disk.broken = lambda path: path.startswith("/one")
    directories = load(disk, told=told)
    assert (directories.live_paths, [it.path for it in told]) == ((OTHER,), [ONE])
    directories.open_log(ORDERS_0, None, SMALL)
    directories.close()
    disk.broken = lambda _: True
    with pytest.raises(DiskError, match="no log directory is usable"):
        load(disk)


def test_a_directory_that_is_moved_away_is_offline_with_the_next_checkpoint_though_its_files_are_open() -> None:
    disk, told = SimulatedDisk(), Told()
    directories = load(disk, told=told)
    log = directories.open_log(ORDERS_0, None, SMALL)
    log.append_as_leader(batch(b"a"), EPOCH, NOW_MS)
    disk.rename(ONE, "/moved")
    log.append_as_leader(batch(b"b"), EPOCH, NOW_MS)
    directories.checkpoint_high_watermarks({})
    assert [(one.path, one.topic_partitions) for one in told] == [(ONE, frozenset({ORDERS_0}))]
    with pytest.raises(LogOffline):
        log.append_as_leader(batch(b"c"), EPOCH, NOW_MS)


async def test_whoever_waits_for_the_end_of_the_last_directory_hears_why_each_failed() -> None:
    disk = SimulatedDisk()
    directories = load(disk)
    waiting = asyncio.create_task(directories.wait_until_all_failed())
    for path in (ONE, OTHER):
        await asyncio.sleep(0)
        assert not waiting.done()
        disk.remove_folder(path)
        directories.checkpoint_high_watermarks({})
    with pytest.raises(DiskError, match=r"all log directories have failed: /one/\.lock .*; /other/\.lock "):
        await waiting


def test_a_full_disk_takes_the_directory_offline_and_what_was_acknowledged_stays() -> None:
    disk = SimulatedDisk()
    directories = load(disk, [ONE])
    log = directories.open_log(ORDERS_0, None, SMALL)
    log.append_as_leader(batch(b"a"), EPOCH, NOW_MS)
    disk.capacity_bytes = 250
    with pytest.raises(DiskError, match="full"):
        log.append_as_leader(batch(b"x" * 200), EPOCH, NOW_MS)
    directories.close()
    disk.capacity_bytes = None
    again = load(disk, [ONE]).find_log(ORDERS_0)
    assert again is not None
    assert all_bytes(again) == replicate(b"a", at=0)


def test_an_earlier_topic_of_the_same_name_is_another_one() -> None:
    disk = SimulatedDisk()
    directories = load(disk)
    directories.open_log(ORDERS_0, None, SMALL)
    assert directories.find_topic_id(ORDERS_0) is None
    directories.open_log(ORDERS_0, ORDERS_ID, SMALL)
    directories.open_log(ORDERS_0, None, SMALL)
    with pytest.raises(InconsistentTopicId) as raised:
        directories.open_log(ORDERS_0, OTHER_ID, SMALL)
    assert raised.value.error_code is ErrorCode.inconsistent_topic_id
    directories.close()
    assert load(disk).find_topic_id(ORDERS_0) == ORDERS_ID


def test_nothing_that_was_known_of_a_deleted_log_holds_for_the_next_one_of_its_name() -> None:
    disk = SimulatedDisk()
    directories = load(disk, [ONE])
    log = directories.open_log(ORDERS_0, ORDERS_ID, SMALL)
    log.append_as_leader(batch(b"a"), EPOCH, NOW_MS)
    log.flush()
    directories.checkpoint_recovery_points()
    directories.checkpoint_high_watermarks({ORDERS_0: 1})
    directories.delete(ORDERS_0)
    directories.delete(ORDERS_0)
    assert directories.find_log(ORDERS_0) is None
    assert disk.read_whole(ONE / "replication-offset-checkpoint") == b"0\n0\n"
    assert disk.read_whole(ONE / "recovery-point-offset-checkpoint") == b"0\n0\n"
    fresh = directories.open_log(ORDERS_0, OTHER_ID, SMALL)
    assert (fresh.log_end_offset, directories.find_high_watermark(ORDERS_0)) == (0, None)


def test_what_was_being_deleted_is_deleted_and_what_is_no_log_is_left_alone() -> None:
    disk = SimulatedDisk()
    for name in (f"orders-0.{'0' * 32}-delete", "orders-1.abc-future", "notes", "lost+found"):
        disk.make_folder(ONE / name)
        disk.damage(ONE / name / "a", b"?")
    directories = load(disk, [ONE])
    assert directories.logs == {}
    assert {"orders-1.abc-future", "notes", "lost+found"} < set(disk.list(ONE))
    assert f"orders-0.{'0' * 32}-delete" not in disk.list(ONE)


def test_a_log_that_cannot_be_used_is_offline_and_the_others_are_used() -> None:
    disk = SimulatedDisk()
    directories = load(disk, [ONE])
    for where in (ORDERS_0, ORDERS_1):
        directories.open_log(where, ORDERS_ID, SMALL)
    disk.damage(ONE / "orders-0" / f"{0:020d}.log", old_message(1))
    disk.make_folder(ONE / "orders-2")
    disk.damage(ONE / "orders-2" / "partition.metadata", b"version: 7\n")
    directories.close()
    disk.remove(ONE / ".kafka_cleanshutdown")
    again = load(disk, [ONE])
    assert again.logs.keys() == {ORDERS_1}
    assert {where.partition for where in again.offline} == {0, 2}
    with pytest.raises(LogOffline):
        again.open_log(ORDERS_0, ORDERS_ID, SMALL)
    assert again.live_paths == (ONE,)


def test_a_log_that_was_unusable_for_a_while_has_its_checkpoints_after_the_repair_and_is_scanned() -> None:
    disk = SimulatedDisk()
    directories = load(disk, [ONE])
    log = directories.open_log(ORDERS_0, ORDERS_ID, SMALL)
    log.append_as_leader(batch(b"x") + batch(b"y"), EPOCH, NOW_MS)
    log.raise_log_start(1)
    directories.close({ORDERS_0: 2})
    path = ONE / "orders-0/partition.metadata"
    metadata = disk.read_whole(path)
    disk.damage(path, b"")
    unusable = load(disk, [ONE])
    unusable.open_log(ORDERS_1, ORDERS_ID, SMALL)
    unusable.close()
    assert not disk.exists(ONE / ".kafka_cleanshutdown")
    assert disk.read_whole(ONE / "recovery-point-offset-checkpoint") == b"0\n2\norders 0 2\norders 1 0\n"
    disk.damage(path, metadata)
    repaired = load(disk, [ONE])
    assert (repaired.logs[ORDERS_0].log_start_offset, repaired.find_high_watermark(ORDERS_0)) == (1, 2)
    repaired.close()
    assert disk.exists(ONE / ".kafka_cleanshutdown")


def test_two_directories_with_the_same_log_are_refused() -> None:
    disk = SimulatedDisk()
    for path in (ONE, OTHER):
        directories = load(disk, [path])
        directories.open_log(ORDERS_0, None, SMALL)
        directories.close()
    with pytest.raises(DirectoryRefused, match="both have a log of orders-0"):
        load(disk)


@pytest.mark.parametrize(
    "content", [b"", b"?", b"0\n1\norders 0 -5\n", b"0\n1\norders 99999999999 5\n", b"0\n9\norders 0 5\n"]
)
def test_checkpoints_that_make_no_sense_are_taken_for_none(content: bytes) -> None:
    disk = SimulatedDisk()
    directories = load(disk, [ONE])
    directories.open_log(ORDERS_0, None, SMALL).append_as_leader(batch(b"a"), EPOCH, NOW_MS)
    directories.close({ORDERS_0: 1})
    for name in ("replication", "recovery-point", "log-start"):
        disk.damage(ONE / f"{name}-offset-checkpoint", content)
    again = load(disk, [ONE])
    assert again.find_high_watermark(ORDERS_0) is None
    assert again.logs[ORDERS_0].log_end_offset == 1


@pytest.mark.parametrize("is_crash", [True, False])
def test_what_was_cut_and_written_anew_is_read_after_a_crash(is_crash: bool) -> None:
    disk = SimulatedDisk()
    directories = load(disk, [ONE])
    log = directories.open_log(ORDERS_0, None, SMALL)
    for _ in range(9):
        log.append_as_leader(batch(b"x" * 50), EPOCH, NOW_MS)
    log.flush()
    directories.checkpoint_recovery_points()
    assert log.recovery_point == 9
    log.truncate_to(2)
    assert disk.read_whole(ONE / "recovery-point-offset-checkpoint") == b"0\n1\norders 0 2\n"
    for _ in range(9):
        log.append_as_leader(batch(b"y" * 50), EPOCH, NOW_MS)
    if is_crash:
        disk = disk.restart(lambda path, unflushed: unflushed if path.endswith("9.log") else unflushed // 2)
    else:
        directories.close()
    again = load(disk, [ONE]).logs[ORDERS_0]
    assert offsets(again) == [(number, number) for number in range(again.log_end_offset)]
    assert again.log_end_offset == (2 if is_crash else 11)


def test_the_start_of_a_log_survives() -> None:
    disk = SimulatedDisk()
    directories = load(disk, [ONE])
    log = directories.open_log(ORDERS_0, None, SMALL)
    log.append_as_leader(batch(b"x") + batch(b"y"), EPOCH, NOW_MS)
    log.raise_log_start(1)
    directories.close()
    assert load(disk, [ONE]).logs[ORDERS_0].log_start_offset == 1
