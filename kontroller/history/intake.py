"""Intake of sources into a history: folders of journals, journals served by controllers, logs of Kafka's own
controller.

A source that cannot be reached is reported, and the others are taken in.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kontroller.history.kept_history import KeptHistory
from kontroller.history.progress import estimate
from kontroller.history.session import estimate_unpacked_bytes
from kontroller.history.sources import journal_files, text_logs
from kontroller.history.sources.journal_http import JournalUnreadable, fetch
from kontroller.history.sources.journal_tokens import JournalTokens

BYTES_PER_SECOND_PER_CORE: Final = 3e6
"""Bytes of journal lines that a core reads, checks, keeps and folds in a second. It serves only the estimate."""

_SERVED: Final = ("http://", "https://")
_ADDRESS: Final = "://"


def take_in_journals(kept: KeptHistory, journals: Sequence[str], tokens: JournalTokens | None = None) -> list[str]:
    """Take in folders of segments, and journals that controllers serve. Return an error for each that could not be
    read."""
    folders, unread = _readable(kept, journals, tokens)
    if folders:
        _announce(kept, folders)
        kept.take_in_lines(journal_files.lines(kept.store.spark, folders))
    return unread


def take_in_kafka_logs(kept: KeptHistory, logs: Sequence[str], *, cluster_id: str, time_zone: str) -> list[str]:
    """Take in the text logs of the brokers of one cluster. Return an error for each that could not be read."""
    folders, unread = _readable(kept, logs)
    if folders:
        _announce(kept, folders)
        told = text_logs.lines(kept.store.spark, folders)
        kept.take_in(*text_logs.read(told, cluster_id=cluster_id, time_zone=time_zone))
    return unread


def _readable(
    kept: KeptHistory, places: Sequence[str], tokens: JournalTokens | None = None
) -> tuple[list[str], list[str]]:
    """Return the folders that can be read, fetched copies included, and an error for each other place."""
    folders: list[str] = []
    unread: list[str] = []
    copies = kept.copies
    if copies is None and any(place.startswith(_SERVED) for place in places):
        copies = Path(tempfile.mkdtemp(prefix="kontroller-"))
    for place in places:
        if copies is not None and place.startswith(_SERVED):
            try:
                with kept.steps.step(f"Fetching {place}"):
                    folders.append(str(fetch(place, copies, tokens)))
            except JournalUnreadable as error:
                unread.append(str(error))
        elif _ADDRESS in place or Path(place).is_dir():
            folders.append(place)
        else:
            unread.append(f"{place} is not a folder on this machine: give the folder with the segments or logs")
    return folders, unread


def _announce(kept: KeptHistory, folders: Sequence[str]) -> None:
    """Print the size of the input and the expected duration, if the size is quickly known."""
    files = [path for folder in folders if _ADDRESS not in folder for path in Path(folder).rglob("*") if path.is_file()]
    if files:
        cores = kept.store.spark.sparkContext.defaultParallelism
        told = estimate(estimate_unpacked_bytes(files), cores * BYTES_PER_SECOND_PER_CORE)
        kept.steps.console.print(f"{len(files)} files, {told}", soft_wrap=True)
