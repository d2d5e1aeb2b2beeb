"""Automatic rebalance of leaders: if a broker misses too many of its leaderships, its preferred replicas are elected.

The first check is soon after a term begins, when brokers have often just moved. Later ones follow at the interval.
"""

from typing import Final

import structlog

from controller_core.controller.loop.events import BalanceDue
from controller_core.controller.machines import partition_machine
from controller_core.controller.machines.partition_machine import Election
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.controller.state.liveness import Liveness
from controller_core.controller.term.rights import Remembers
from controller_core.controller.term.term import Term
from controller_core.model.ids import TopicPartition
from controller_core.model.leader_balance import find_brokers_over
from controller_core.model.settings import shared

log = structlog.get_logger()

FIRST_LOOK_AFTER_MS: Final = 5_000


def start_balancing(term: Remembers) -> None:
    """Start the timer of the first check, unless the process was started without balancing."""
    if term.cluster_settings.given.get(shared.AUTO_REBALANCE) != "false":
        term.enqueue_later(BalanceDue(), FIRST_LOOK_AFTER_MS)


async def on_balance_due(term: Term) -> None:
    """Elect the preferred replicas of brokers that miss too many of their leaderships, and start the timer again."""
    settings = term.cluster_settings
    wanted = find_partitions_to_give_back(term.state, settings.leader_imbalance_per_broker_percentage)
    if wanted and settings.auto_leader_rebalance_enable:
        log.info("rebalancing leaders", partitions=len(wanted))
        await partition_machine.bring_online(term, wanted, Election.PREFERRED)
    is_unknown = settings.auto_leader_rebalance_enable is None
    pause_ms = FIRST_LOOK_AFTER_MS if is_unknown else settings.leader_imbalance_check_interval_seconds * 1000
    term.enqueue_later(BalanceDue(), pause_ms)


def find_partitions_to_give_back(state: ClusterState, threshold_percent: int) -> list[TopicPartition]:
    """Return the partitions of brokers above the threshold whose preferred replica can lead.

    Topics that are being deleted do not count. An election that must fail is not held (KAFKA-9866)."""
    preferred, missed = state.tally.count_by_preferred(), state.tally.find_missed()
    for name in state.deletions:
        led = filter(state.states.__contains__, state.list_partitions_of(name))
        preferred.subtract(broker for each in led if (broker := state.assignment(each).preferred) is not None)
    if state.deletions:
        missed = {
            broker: {partition for partition in partitions if partition.topic not in state.deletions}
            for broker, partitions in missed.items()
        }
    live = Liveness(state, state.live)
    return [
        partition
        for broker in find_brokers_over(
            {broker: len(each) for broker, each in missed.items()}, preferred, threshold_percent
        )
        for partition in missed[broker]
        if broker in live(partition) and broker in state.states[partition].leader_and_isr.isr
    ]
