"""Leaders go back to their preferred replicas by themselves, when a broker misses too many of its own.

The first look is soon after a term begins, when brokers have most often just moved; then one in every interval.
"""

from typing import Final

import structlog

from controller_core.controller.loop.events import BalanceDue
from controller_core.controller.machines import partition_machine
from controller_core.controller.machines.partition_machine import Election
from controller_core.controller.state.liveness import Liveness
from controller_core.controller.term.term import Term
from controller_core.model.leader_balance import Leadership, partitions_to_rebalance

log = structlog.get_logger()

FIRST_LOOK_AFTER_MS: Final = 5_000


def start_balancing(term: Term) -> None:
    """Arms the timer of the first look, where balancing is enabled."""
    if term.settings.auto_leader_rebalance_enable:
        term.enqueue_later(BalanceDue(), FIRST_LOOK_AFTER_MS)


async def on_balance_due(term: Term) -> None:
    """Elects preferred replicas where brokers miss too many of their leaderships, and arms the timer again."""
    live = Liveness(term.state, term.state.live)
    leaderships = {
        partition: Leadership(
            preferred=preferred,
            leader=state.leader_and_isr.leader,
            can_lead=preferred in live(partition) and preferred in state.leader_and_isr.isr,
        )
        for partition, state in term.state.states.items()
        if term.state.has(partition)
        and partition.topic not in term.state.deletions
        and (preferred := term.state.assignment(partition).preferred) is not None
    }
    wanted = partitions_to_rebalance(leaderships, term.settings.leader_imbalance_per_broker_percentage)
    if wanted:
        log.info("rebalancing leaders", partitions=len(wanted))
        await partition_machine.to_online(term, wanted, Election.PREFERRED)
    term.enqueue_later(BalanceDue(), term.settings.leader_imbalance_check_interval_seconds * 1000)
