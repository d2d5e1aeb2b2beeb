"""What stopping a node would do to the quorum of controllers, where it is one of them (`process.roles=broker,controller`).

Controllers decide while most of those that vote follow their leader. Without that nobody elects leaders of partitions, and
no broker that stops hands over what it leads. So a voter may stop when enough *others* follow. Where those can never be
most of all (with one voter, or two) all of them is as good as it gets: that is waited for, and nothing more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from controller_core.model.ids import BrokerId

LATE_MS: Final = 3_000
"""Who is further behind does not follow. Leaders write twice a second, and followers fetch at once; without a fetch for
`controller.quorum.fetch.timeout.ms` (2 s at first) Kafka takes them for lost, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """A controller that votes."""

    voter: BrokerId
    behind_ms: int | None
    """How long ago it had all that the leader had; None where that was never so, or is not known."""

    @property
    def follows(self) -> bool:
        return self.behind_ms is not None and self.behind_ms <= LATE_MS


def missing_votes(votes: Sequence[Vote], node: BrokerId) -> tuple[BrokerId, ...]:
    """The voters that the controllers would miss without a node, by their ids; none where it does not vote."""
    others = [vote for vote in votes if vote.voter != node]
    if len(others) == len(votes):
        return ()
    needed = min(len(votes) // 2 + 1, len(others))
    late = tuple(sorted(vote.voter for vote in others if not vote.follows))
    return late if len(others) - len(late) < needed else ()
