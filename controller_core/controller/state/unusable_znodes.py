"""Znodes that cannot be used, with the reasons. Each is reported once, and counted for monitoring.

A handler reads a znode whenever something near it happens. The error is logged when it is found and when it changes,
not at every read. If a tool wrote very many bad znodes of a kind, the first are named and the others counted. The
reports are kept for a term, so a new controller logs all of them again.
"""

from collections import Counter
from collections.abc import Collection
from typing import Final

import structlog

from controller_core.zk import paths

log = structlog.get_logger()

MOST_NAMED: Final = 100
"""The maximum of unusable znodes of one kind that the log names."""
MOST_SHOWN: Final = 300
"""The number of characters shown of a path. Somebody may have created a name of a megabyte."""

_KINDS: Final = (
    (f"{paths.BROKER_IDS}/", "broker"),
    (f"{paths.TOPICS}/", "topic"),
    (f"{paths.DELETE_TOPICS}/", "delete_topic"),
    (paths.REASSIGN_PARTITIONS, "reassignment"),
    (paths.PREFERRED_REPLICA_ELECTION, "preferred_election"),
    (paths.PARTITIONS_ADD, "partition_add"),
    (paths.PARTITIONS_REMOVE, "partition_remove"),
    (paths.PARTITIONS_REASSIGNED, "partition_reassigned"),
    (paths.ISR_CHANGE_NOTIFICATION, "isr_change"),
    (paths.LOG_DIR_EVENT_NOTIFICATION, "log_dir_event"),
    (paths.CONFIG_CHANGES, "config_change"),
    (paths.CONFIG, "config"),
    (paths.ACLS, "acl"),
    (paths.DELEGATION_TOKENS, "delegation_token"),
    (paths.CLUSTER_ID, "cluster_id"),
    (paths.FEATURE, "feature"),
    (paths.PRODUCER_ID_BLOCK, "producer_id_block"),
    (paths.KONTROLLER, "kontroller"),
)


class UnusableZnodes:
    """The unusable znodes that still exist, by their paths."""

    def __init__(self) -> None:
        self.found: Final[Counter[str]] = Counter()
        """The number found so far, by kind, including those that were removed at once."""
        self.standing: Final[Counter[str]] = Counter()
        """The present number, by kind."""
        self._reasons: dict[str, str] = {}
        self._unwatched: dict[str, str] = {}

    def report(self, path: str, consequence: str, reason: object, **context: object) -> None:
        """Log the error of a znode and its consequence, unless the same error is logged already."""
        why, kind = str(reason), _kind(path)
        known = self._reasons.get(path)
        if known == why:
            return
        self._reasons[path] = why
        self.found[kind] += 1
        self.standing[kind] += known is None
        if self.standing[kind] <= MOST_NAMED:
            log.error(consequence, path=path[:MOST_SHOWN], error=why, **context)
        elif self.standing[kind] == MOST_NAMED + 1:
            log.error("more unusable znodes than are named here", kind=kind, named=MOST_NAMED)

    def report_removed(self, path: str, consequence: str, reason: object, **context: object) -> None:
        """Like `report`, for a znode that is removed, such as a request."""
        self.found[_kind(path)] += 1
        log.error(consequence, path=path[:MOST_SHOWN], error=str(reason), **context)

    def report_unwatched(self, path: str, consequence: str, reason: object) -> None:
        """Like `report`, for a znode whose repair would not be noticed: logged once, and counted as found."""
        why = str(reason)
        if self._unwatched.get(path) != why:
            self._unwatched[path] = why
            self.report_removed(path, consequence, why)

    def clear(self, path: str) -> None:
        """Mark the znode as usable or gone."""
        if self._reasons and self._reasons.pop(path, None) is not None:
            self.standing[_kind(path)] -= 1

    def has(self, path: str) -> bool:
        """Return True if the znode, or something in it, cannot be used."""
        return path in self._reasons

    def keep_among(self, parent: str, names: Collection[str]) -> None:
        """Clear the reports below children of the parent that are gone. `names` are its present children."""
        above = f"{parent}/"
        below = [path for path in self._reasons if path.startswith(above)]
        present = frozenset(names) if below else ()
        for path in below:
            if path.removeprefix(above).partition("/")[0] not in present:
                self.clear(path)


def _kind(path: str) -> str:
    if path.startswith(f"{paths.TOPICS}/") and "/partitions/" in path:
        return "partition_state"
    return next((kind for prefix, kind in _KINDS if path.startswith(prefix)), "other")
