"""The sections of pages whose commands the tests of this folder run, and the reader who runs them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.e2e.pages.page_commands import Block, read_blocks, run_block
from tests.e2e.release import PROJECT

_FOLDERS: Final = ("charts", "crds", "examples")
"""The folders that commands name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """Sections of a page, or the whole page if none are named."""

    page: str
    sections: tuple[str, ...] = ()

    def blocks(self) -> Sequence[Block]:
        """Return the blocks that a reader runs, in the order of the page."""
        return [
            each
            for each in read_blocks(PROJECT / self.page)
            if each.not_run is None and (not self.sections or each.section in self.sections)
        ]


INSTALLATION: Final = Walk(page="docs/start.md", sections=("Install on Kubernetes",))
TOUR: Final = Walk(page="docs/start.md", sections=("A tour",))
OPERATIONS: Final = Walk(page="docs/operations.md")
DRAINING: Final = Walk(page="docs/drain.md")
GITOPS: Final = Walk(page="docs/gitops.md")
UNINSTALL: Final = Walk(page="docs/start.md", sections=("Uninstall",))
KAFKA_4: Final = Walk(page="docs/start.md", sections=("Kafka 4 on Kubernetes",))
WALKS: Final = (INSTALLATION, TOUR, OPERATIONS, DRAINING, GITOPS, UNINSTALL, KAFKA_4)


class Reader:
    """A reader who runs commands in a checkout, whose shell reaches the cluster as `make try` says."""

    def __init__(self, folder: Path, clients: Path) -> None:
        self._folder = folder
        self._environment = {"PATH": f"{clients}:/usr/sbin:/usr/bin:/sbin:/bin"}
        for name in _FOLDERS:
            (folder / name).symlink_to(PROJECT / name)

    def follow(self, walk: Walk) -> str:
        """Run the blocks of a walk, and return what they print. Raises CommandFailed."""
        return "".join(run_block(block, self._folder, self._environment) for block in walk.blocks())
