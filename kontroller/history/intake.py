"""Intake of sources into a history: folders of journals, journals served by controllers, logs of Kafka's own
controller.

A source that cannot be reached is reported, a file or line that must not be read is left out and reported, and
everything else is taken in.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from kontroller.history.engine.files import unescape_pattern
from kontroller.history.kept_history import KeptHistory
from kontroller.history.progress import estimate
from kontroller.history.session import estimate_unpacked_bytes
from kontroller.history.sources import journal_files, text_logs
from kontroller.history.sources.caps import Caps
from kontroller.history.sources.journal_copies import fetch
from kontroller.history.sources.journal_http import JournalUnreadable
from kontroller.history.sources.journal_tls import JournalTls
from kontroller.history.sources.journal_tokens import JournalTokens
from kontroller.history.sources.local_files import check_files

BYTES_PER_SECOND_PER_CORE: Final = 3e6
"""Bytes of journal lines that a core reads, checks, keeps and folds in a second. It serves only the estimate."""

_SERVED: Final = ("http://", "https://")
_ADDRESS: Final = "://"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A reader's credentials for served journals, and its caps for all that it reads."""

    tokens: JournalTokens = field(default_factory=JournalTokens)
    tls: JournalTls = field(default_factory=JournalTls)
    caps: Caps = field(default_factory=Caps)


class Taken(NamedTuple):
    """The result of an intake: an error for each source, file or line that is left out. `is_read`: others were read."""

    is_read: bool
    problems: list[str]


def take_in_journals(kept: KeptHistory, journals: Sequence[str], access: Access | None = None) -> Taken:
    """Take in folders of segments, and journals that controllers serve."""
    access = access or Access()
    places, problems = _find_readable(kept, journals, journal_files.SEGMENT_NAMES, access)
    if places:
        _announce(kept, places)
        kept.take_in_lines(journal_files.lines(kept.store.spark, places, access.caps))
    return Taken(bool(places), problems)


def take_in_kafka_logs(
    kept: KeptHistory, logs: Sequence[str], *, cluster_id: str, time_zone: str, access: Access | None = None
) -> Taken:
    """Take in the text logs of the brokers of one cluster."""
    access = access or Access()
    places, problems = _find_readable(kept, logs, text_logs.FILE_NAMES, access)
    if places:
        _announce(kept, places)
        told = text_logs.lines(kept.store.spark, places, access.caps)
        kept.take_in(*text_logs.read(told, cluster_id=cluster_id, time_zone=time_zone))
    return Taken(bool(places), problems)


def _find_readable(
    kept: KeptHistory, given: Sequence[str], patterns: Sequence[str], access: Access
) -> tuple[list[str], list[str]]:
    """Return the folders and files for Spark to read, and an error for everything that it must not read."""
    places: list[str] = []
    folders, problems = _find_folders(kept, given, access)
    for folder in folders:
        if _ADDRESS in folder:
            places.append(folder)
            continue
        with kept.steps.step(f"Checking the files of {folder}"):
            checked = check_files(folder, patterns, access.caps)
        places += checked.places
        problems += checked.problems
    return places, problems


def _find_folders(kept: KeptHistory, given: Sequence[str], access: Access) -> tuple[list[str], list[str]]:
    """Return the folders, copies of served journals included, and an error for each other place."""
    folders: list[str] = []
    problems: list[str] = []
    copies = kept.copies
    if copies is None and any(place.startswith(_SERVED) for place in given):
        copies = Path(tempfile.mkdtemp(prefix="kontroller-"))
    for place in given:
        if copies is not None and place.startswith(_SERVED):
            try:
                with kept.steps.step(f"Fetching {place}"):
                    copied = fetch(place, copies, access.tokens, access.tls, access.caps)
            except JournalUnreadable as error:
                problems.append(str(error))
                continue
            folders.append(str(copied.folder))
            problems += copied.problems
        elif _ADDRESS in place or Path(place).is_dir():
            folders.append(place)
        else:
            problems.append(f"{place} is not a folder on this machine: give the folder with the segments or logs")
    return folders, problems


def _announce(kept: KeptHistory, places: Sequence[str]) -> None:
    """Print the size of the input and the expected duration, if the size is quickly known."""
    here = [Path(unescape_pattern(place)) for place in places if _ADDRESS not in place]
    files = [path for place in here for path in (place.rglob("*") if place.is_dir() else (place,)) if path.is_file()]
    if files:
        cores = kept.store.spark.sparkContext.defaultParallelism
        told = estimate(estimate_unpacked_bytes(files), cores * BYTES_PER_SECOND_PER_CORE)
        kept.steps.console.print(f"{len(files)} files, {told}", soft_wrap=True)
