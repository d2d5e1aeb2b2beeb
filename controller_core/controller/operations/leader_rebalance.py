"""Automatic rebalance of leaders: if a broker misses too many of its leaderships, its preferred replicas are elected.

The first check is soon after a term begins, when brokers have often just moved. Later ones follow at the interval. A
broker that was drained does not wait for it: its end was planned, so it gets its leaderships back as soon as clients
have forgotten its former address. Kafka's controller lets it wait for the interval.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import structlog

from controller_core.controller.loop.events import BalanceDue
from controller_core.controller.machines import partition_machine
from controller_core.controller.machines.partition_machine import Election
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.controller.state.liveness import Liveness
from controller_core.controller.term.rights import Remembers
from controller_core.controller.term.term import Term
from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.model.leader_balance import find_brokers_over
from controller_core.model.settings import shared

log = structlog.get_logger()

FIRST_LOOK_AFTER_MS: Final = 5_000


def start_balancing(term: Remembers) -> None:
    """Start the timer of the first check, unless the process was started without balancing."""
    if term.cluster_settings.given.get(shared.AUTO_REBALANCE) != "false":
        term.enqueue_later(BalanceDue(), FIRST_LOOK_AFTER_MS)


def check_when_forgotten(term: Remembers, returned: Iterable[BrokerId]) -> None:
    """Start the timer of a check for each drained broker that has returned."""
    for broker in returned:
        event = BalanceDue(returned=(broker, term.state.brokers[broker].epoch))
        term.enqueue_later(event, term.settings.address_cache_seconds * 1000)


async def on_balance_due(term: Term, event: BalanceDue) -> None:
    """Elect the preferred replicas of brokers that miss too many of their leaderships, and start the timer again."""
    settings = term.cluster_settings
    is_enabled = settings.auto_leader_rebalance_enable
    owed = find_owed(term.state, settings.leader_imbalance_per_broker_percentage)
    if event.returned is not None:
        broker, epoch = event.returned
        known = term.state.brokers.get(broker)
        is_wanted = is_enabled is not False and known is not None and known.epoch == epoch
        owed = {broker: owed[broker]} if is_wanted and broker in owed else {}
    ready = find_ready(term.state, owed)
    if ready and is_enabled:
        log.info("rebalancing leaders", partitions=len(ready))
        await partition_machine.bring_online(term, ready, Election.PREFERRED)
    if event.returned is None and is_enabled is not None:
        term.enqueue_later(event, settings.leader_imbalance_check_interval_seconds * 1000)
    elif event.returned is None or owed:
        term.enqueue_later(event, FIRST_LOOK_AFTER_MS)


def find_owed(state: ClusterState, threshold_percent: int) -> dict[BrokerId, Collection[TopicPartition]]:
    """Return the brokers above the threshold with the leaderships that they miss. Topics in deletion do not count."""
    preferred, missed = state.tally.count_by_preferred(), state.tally.find_missed()
    for name in state.deletions:
        led = filter(state.states.__contains__, state.list_partitions_of(name))
        preferred.subtract(broker for each in led if (broker := state.assignment(each).preferred) is not None)
    if state.deletions:
        missed = {
            broker: {partition for partition in partitions if partition.topic not in state.deletions}
            for broker, partitions in missed.items()
        }
    numbers = {broker: len(each) for broker, each in missed.items()}
    return {broker: missed[broker] for broker in find_brokers_over(numbers, preferred, threshold_percent)}


def find_ready(state: ClusterState, owed: Mapping[BrokerId, Collection[TopicPartition]]) -> list[TopicPartition]:
    """Return the partitions that their broker can lead. An election that must fail is not held (KAFKA-9866)."""
    live = Liveness(state, state.live)
    return [
        partition
        for broker, partitions in owed.items()
        for partition in partitions
        if broker in live(partition) and broker in state.states[partition].leader_and_isr.isr
    ]
