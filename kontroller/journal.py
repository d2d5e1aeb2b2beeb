"""The journal of a cluster, as a value for scripts."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from controller_core.journal.fold import Folded, fold
from controller_core.journal.reader import Entry, read


@dataclass(frozen=True, slots=True)
class Journal:
    """The journal of one cluster: the folders in which its controllers, one or several, have written segments.

    >>> journal = Journal("examples/journal")
    >>> sum(isinstance(entry, Record) for entry in journal.read())
    22
    >>> sorted(journal.fold().image.brokers)
    [1, 2, 3]
    """

    folders: tuple[Path, ...]

    def __init__(self, *folders: Path | str) -> None:
        object.__setattr__(self, "folders", tuple(Path(folder) for folder in folders))

    def read(self) -> Iterator[Entry]:
        """Return the records in their order, the gaps between them, and findings about lines that cannot be read.

        Raises `OSError` if a folder cannot be listed; a segment that cannot be read is a finding.
        """
        return read(*self.folders)

    def fold(self) -> Folded:
        """Return the state of the cluster after the last record, and how many checksums have proven it."""
        return fold(self.read())
