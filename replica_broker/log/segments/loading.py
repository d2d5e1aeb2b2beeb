"""The segments of a log as its folder has them: what a crash, or a stock broker, left there besides is cleared away.

After an unclean end, what is behind the recovery point may be anything: those segments are read and cut. Where one lost its
end, or all of itself, those behind it are taken away, so that what is left is always what was appended first.
"""

import re
from itertools import pairwise
from pathlib import PurePath
from typing import Final

import structlog

from replica_broker.disk.disk import Disk, DiskPath
from replica_broker.log.errors import CorruptBatch, UnsupportedFormat
from replica_broker.log.record_batches import MOST_OFFSET
from replica_broker.log.segments.recovery import recover
from replica_broker.log.segments.segment import LOG_SUFFIX, SUFFIXES, Segment
from replica_broker.log.segments.segments import Segments

log = structlog.get_logger()

_SEGMENT: Final = re.compile(rf"([0-9]{{20}}){re.escape(LOG_SUFFIX)}")
_LEFT_OVER: Final = re.compile(r".*\.(deleted|cleaned|tmp)")
"""What was about to be removed, or was not finished."""
_OF_A_SEGMENT: Final = re.compile(r"([0-9]{20})\.(index|timeindex|txnindex)")


def load_segments(
    disk: Disk,
    folder: DiskPath,
    *,
    index_interval_bytes: int,
    is_clean: bool,
    recovery_point: int,
    least_offset: int,
    now_ms: int,
) -> Segments:
    """The segments in a folder; a new one where there is none, which begins at the least offset.

    Raises `DiskError`, and `UnsupportedFormat` where there are messages of an older format."""
    bases = _clear_and_find(disk, folder)
    segments = Segments(disk, folder, [], index_interval_bytes=index_interval_bytes)
    found = [segments.made(base, now_ms) for base in bases]
    for segment, following in pairwise(found):
        segment.next_offset = following.base_offset
    found = _in_order(found, None if is_clean else recovery_point)
    loaded = Segments(disk, folder, found, index_interval_bytes=index_interval_bytes)
    if not found:
        loaded.begin(least_offset, now_ms)
    return loaded


def _clear_and_find(disk: Disk, folder: DiskPath) -> list[int]:
    names = disk.list(folder)
    bases = [int(match[1]) for name in names if (match := _SEGMENT.fullmatch(name)) and int(match[1]) <= MOST_OFFSET]
    kept = {f"{base:020d}{suffix}" for base in bases for suffix in SUFFIXES}
    for name in names:
        if _LEFT_OVER.fullmatch(name) or (_OF_A_SEGMENT.fullmatch(name) and name not in kept):
            disk.remove(PurePath(folder) / name)
        elif name.endswith(LOG_SUFFIX) and name not in kept:
            log.warning("file is no segment, it is left alone", folder=str(folder), file=name)
    return sorted(bases)


def _in_order(found: list[Segment], recovery_point: int | None) -> list[Segment]:
    """Each with its indexes, the last one with its end; without those that are behind one that lost its own.

    Without a recovery point the end was a clean one."""
    for number, segment in enumerate(found):
        following = found[number + 1 :]
        if following and (recovery_point is None or following[0].base_offset <= recovery_point):
            _have_indexes(segment)
        elif recovery_point is None:
            _find_end(segment)
        else:
            is_cut = recover(segment)
            if following and (is_cut or segment.next_offset != following[0].base_offset):
                for lost in reversed(following):
                    log.warning("segment is behind one that lost its end, it is removed", segment=str(lost.path))
                    lost.remove()
                return found[: number + 1]
            if following:
                segment.indexes.seal()
    return found


def _have_indexes(segment: Segment) -> None:
    if not segment.has_true_indexes():
        log.warning("indexes of a segment are made anew", segment=str(segment.path))
        next_offset = segment.next_offset
        segment.make_indexes_anew()
        segment.indexes.seal()
        segment.next_offset = next_offset


def _find_end(active: Segment) -> None:
    if not active.has_true_indexes():
        log.warning("indexes of a segment are made anew", segment=str(active.path))
        active.make_indexes_anew()
    try:
        active.find_end()
    except (CorruptBatch, UnsupportedFormat) as error:
        log.warning("segment does not end as a clean one does, it is read", segment=str(active.path), reason=str(error))
        recover(active)
