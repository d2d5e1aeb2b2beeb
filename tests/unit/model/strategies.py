"""Partitions as Hypothesis draws them: an assignment, the leadership of some of its replicas, and the live brokers."""

from dataclasses import dataclass

from hypothesis import strategies as st

from controller_core.model.ids import NO_LEADER, BrokerId, LeaderEpoch
from controller_core.model.metadata import LeaderAndIsr, LeaderRecoveryState

BROKERS = tuple(BrokerId(number) for number in range(1, 7))


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A partition that an honest controller could have left behind: its ISR is a part of its assignment."""

    assigned: tuple[BrokerId, ...]
    current: LeaderAndIsr
    live: frozenset[BrokerId]


def replica_lists() -> st.SearchStrategy[tuple[BrokerId, ...]]:
    return st.lists(st.sampled_from(BROKERS), min_size=1, max_size=5, unique=True).map(tuple)


@st.composite
def partitions(draw: st.DrawFn) -> Partition:
    assigned = draw(replica_lists())
    isr = tuple(draw(st.permutations(assigned))[: draw(st.integers(1, len(assigned)))])
    leader = draw(st.sampled_from((*isr, NO_LEADER)))
    return Partition(
        assigned=assigned,
        current=LeaderAndIsr(
            leader=leader,
            isr=isr,
            leader_epoch=LeaderEpoch(draw(st.integers(0, 1000))),
            leader_recovery_state=draw(st.sampled_from(LeaderRecoveryState)),
        ),
        live=draw(st.frozensets(st.sampled_from(BROKERS))),
    )
