"""Loads the segments of a log from its folder, and removes the remains of a crash or of a stock broker.

After an unclean shutdown, the segments after the recovery point may have any content: they are scanned and truncated.
If a segment lost its end, or is missing, the segments after it are removed, so that the log is always a prefix of what
was appended.
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
"""Files whose removal or creation was not finished."""
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
    """Return the segments in a folder, or a new segment at the least offset if there is none.

    Raises `DiskError`, and `UnsupportedFormat` if there are messages of an older format.
    """
    bases = _clear_and_find(disk, folder)
    segments = Segments(disk, folder, [], index_interval_bytes=index_interval_bytes)
    found = [segments.make_segment(base, now_ms) for base in bases]
    for segment, following in pairwise(found):
        segment.next_offset = following.base_offset
    found = _repair(found, None if is_clean else recovery_point)
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
            log.warning("file is not a segment and is ignored", folder=str(folder), file=name)
    return sorted(bases)


def _repair(found: list[Segment], recovery_point: int | None) -> list[Segment]:
    """Repair the indexes of all segments and find the end of the last one.

    Remove the segments after one that lost its end.

    Without a recovery point, the shutdown was clean.
    """
    for number, segment in enumerate(found):
        following = found[number + 1 :]
        if following and (recovery_point is None or following[0].base_offset <= recovery_point):
            _ensure_indexes(segment)
        elif recovery_point is None:
            _find_end(segment)
        else:
            is_cut = recover(segment)
            if following and (is_cut or segment.next_offset != following[0].base_offset):
                for lost in reversed(following):
                    log.warning("segment after one that lost its end is removed", segment=str(lost.path))
                    lost.remove()
                return found[: number + 1]
            if following:
                segment.indexes.seal()
    return found


def _ensure_indexes(segment: Segment) -> None:
    if not segment.has_valid_indexes():
        log.warning("indexes of a segment are rebuilt", segment=str(segment.path))
        next_offset = segment.next_offset
        segment.rebuild_indexes()
        segment.indexes.seal()
        segment.next_offset = next_offset


def _find_end(active: Segment) -> None:
    if not active.has_valid_indexes():
        log.warning("indexes of a segment are rebuilt", segment=str(active.path))
        active.rebuild_indexes()
    try:
        active.find_end()
    except (CorruptBatch, UnsupportedFormat) as error:
        log.warning(
            "segment does not end with a whole batch, it is scanned", segment=str(active.path), reason=str(error)
        )
        recover(active)
