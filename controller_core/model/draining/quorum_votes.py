"""The effects of stopping a node on the quorum of controllers, if it votes there (`process.roles=broker,controller`).

Controllers decide while a majority of the voters follows their leader. Without a majority no partition leaders are
elected, and a broker that stops cannot hand over its leaderships. So a voter may stop if enough *others* follow. With
one voter or two, the others can never be a majority; then it is enough that all of them follow.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from controller_core.model.ids import BrokerId

LATE_MS: Final = 3_000
"""A voter that is further behind does not count as a follower.

Leaders write twice a second, and followers fetch at once. Kafka, too, takes a voter for lost without a fetch for
`controller.quorum.fetch.timeout.ms` (2 s by default).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """A controller that votes."""

    voter: BrokerId
    behind_ms: int | None
    """The time since it last had all that the leader had; None if it never did, or if that is unknown."""

    @property
    def follows(self) -> bool:
        return self.behind_ms is not None and self.behind_ms <= LATE_MS


def find_missing_votes(votes: Sequence[Vote], node: BrokerId) -> tuple[BrokerId, ...]:
    """Return the voters that a majority would lack without a node, sorted; empty if the node does not vote."""
    others = [vote for vote in votes if vote.voter != node]
    if len(others) == len(votes):
        return ()
    needed = min(len(votes) // 2 + 1, len(others))
    late = tuple(sorted(vote.voter for vote in others if not vote.follows))
    return late if len(others) - len(late) < needed else ()
