"""Starts and failures of brokers: `on_broker_startup` and `on_broker_failure` of seed 000.

A broker is alive while it is registered. Its epoch is the czxid of the registration. A broker that bounced faster than
anybody noticed has the same id and a larger epoch. For the controller it failed and started (KIP-380). A broker whose
registration was overwritten with unreadable data has not failed, and keeps its last known registration.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import structlog

from controller_core.controller.loop.events import BrokerModified, BrokersChanged, PartitionRemovalsRequested, ResendDue
from controller_core.controller.machines import partition_machine, replica_machine
from controller_core.controller.operations import deletion, leader_rebalance
from controller_core.controller.reassigning import completion, reassignment
from controller_core.controller.state.cluster_state import find_bounced
from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term.groups import run_in_groups
from controller_core.controller.term.refusals import LONGEST_PAUSE_MS, Refusal, RefusalScope
from controller_core.controller.term.rights import Reads, Remembers
from controller_core.controller.term.term import Term
from controller_core.controller.znodes import deleted_topics, removed_replicas
from controller_core.model.features import find_incompatibilities
from controller_core.model.ids import BrokerEpoch, BrokerId, TopicPartition
from controller_core.model.metadata import Broker
from controller_core.model.transitions import PartitionStatus
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import ZkNode

log = structlog.get_logger()

IGNORED: Final = "unreadable broker registration, ignored"
STAYS_KNOWN: Final = "unreadable broker registration, the broker keeps its last known one"

_WITHOUT_LEADER: Final = (PartitionStatus.OFFLINE, PartitionStatus.NEW)


async def on_brokers_changed(term: Term) -> None:
    """Compare the registered brokers with the known ones, and handle those that started, failed, or both."""
    present = await read_live_brokers(term)
    known = term.state.brokers
    dead = [broker for broker in known if broker not in present]
    restarted = find_bounced(known, present)
    new = [broker for broker in present if broker not in known]
    if new or restarted or dead:
        log.info("brokers changed", new=new, bounced=restarted, dead=dead, live=sorted(present))
    if gone := [*dead, *restarted]:
        for broker in gone:
            await term.channels.remove(broker)
        await on_broker_failure(term, gone)
    if came := [*new, *restarted]:
        drained = term.state.drained & set(came)
        await on_broker_startup(term, {broker: present[broker] for broker in came})
        leader_rebalance.check_when_forgotten(term, drained)


async def on_broker_failure(term: Term, dead: Iterable[BrokerId]) -> None:
    """Run onBrokerFailure: its steps in the order of the specification, for one group of partitions at a time.

    The partitions that lost their leader come first and separately, because the ISRs of the others are written in other
    transactions.
    """
    dead = set(dead)
    for broker in dead:
        term.state.remove_broker(broker)
    affected = term.state.list_partitions_on(dead)
    led = dict.fromkeys(term.state.find_led_by(affected, dead))
    # Step 2 is for all partitions without a leader, also for those without a replica on the dead brokers.
    waiting_elsewhere = set(find_leaderless(term.state)).difference(affected)
    await partition_machine.bring_online(term, sorted(waiting_elsewhere))

    async def heal(partitions: Sequence[TopicPartition]) -> None:
        # 1. partitions w/o leader -> OfflinePartition
        status = term.state.partition_status
        leaderless = [p for p in partitions if p in led and status.get(p) is PartitionStatus.ONLINE]
        partition_machine.take_offline(term, leaderless)
        # 2. partitions in OfflinePartition and NewPartition -> OnlinePartition
        kept = [partition for partition in partitions if not term.state.is_being_deleted(partition.topic)]
        electing = [partition for partition in kept if status.get(partition) in _WITHOUT_LEADER]
        not_elected = await partition_machine.bring_online(term, electing)
        # 3. each replica on the failed broker -> OfflineReplica
        await replica_machine.take_out(term, term.state.list_replicas_among(kept, dead), tells_unchanged=False)
        elected = set(electing).difference(not_elected)
        term.batch.update_metadata([partition for partition in partitions if partition not in elected])

    await run_in_groups(term, [*led, *(partition for partition in affected if partition not in led)], heal)
    await completion.on_replicas_gone(term, dead)
    await deletion.resume(term)


async def on_broker_startup(term: Term, brokers: Mapping[BrokerId, Broker]) -> None:
    """Run onBrokerStartup: its steps in the order of the specification."""
    for broker in brokers.values():
        term.state.add_broker(broker)
        term.channels.add(broker)
        term.static_configs.ask(broker)
    term.unserved.report(brokers.values())
    await send_everything(term, brokers)


async def on_broker_behind(term: Term, broker_id: BrokerId, epoch: BrokerEpoch) -> None:
    """Send everything to a broker that missed requests, because it was unreachable for too long."""
    known = term.state.brokers.get(broker_id)
    if known is not None and known.epoch == epoch and term.channels.catch_up(broker_id):
        log.info("broker can be reached again, it is sent everything", broker=broker_id)
        await send_everything(term, {broker_id: known})


async def send_everything(term: Term, brokers: Mapping[BrokerId, Broker]) -> None:
    """Send brokers all that they must know, and continue what waited for them.

    Brokers that are shutting down are sent only UpdateMetadata: they must not become followers again.
    """
    # 1. send UpdateMetadata requests for all partitions to newly started brokers; the others learn of the brokers
    term.batch.update_metadata(term.state.states, brokers.keys())
    term.batch.update_metadata(())
    brokers = {broker: known for broker, known in brokers.items() if broker not in term.state.shutting_down}
    if not brokers:
        return
    removed_replicas.clean_up(term, brokers.keys())
    deleted_topics.make_forgotten(term, brokers.keys())
    # A broker follows only leaders that it knows to be alive, so it receives the live brokers before anything else.
    await term.send_all_requests()

    # 2. replicas on the newly started broker -> OnlineReplica
    async def start(partitions: Sequence[TopicPartition]) -> None:
        kept = [partition for partition in partitions if not term.state.is_being_deleted(partition.topic)]
        replica_machine.bring_online(term, term.state.list_replicas_among(kept, brokers.keys()))

    await run_in_groups(term, term.state.list_partitions_on(brokers), start)
    # 3. partitions in OfflinePartition and NewPartition -> OnlinePartition
    await elect_offline_partitions(term)
    # 4. complete any outstanding partition reassignment
    await reassignment.resume(term, set(brokers))
    await deletion.resume(term, set(brokers))
    if term.state.removals.ask_again(brokers.keys()):
        term.enqueue(PartitionRemovalsRequested())


def send_everything_later(
    term: Remembers,
    broker: BrokerId,
    epoch: BrokerEpoch,
    reason: str,
    refused: Iterable[RefusalScope] = (),
    *,
    is_urgent: bool = False,
) -> Refusal:
    """Record the refusal of a broker, and have it sent everything after a pause, unless that is scheduled already."""
    refusal, is_due = term.refusals.add(broker, epoch, reason)
    refusal.count(refused)
    if is_due:
        term.enqueue_later(ResendDue(broker, epoch), refusal.pause_ms if is_urgent else LONGEST_PAUSE_MS)
    return refusal


async def elect_offline_partitions(term: Term) -> None:
    """Try to elect a leader for each partition that has none, by the OfflinePartitionLeaderSelector."""
    await partition_machine.bring_online(term, find_leaderless(term.state))


def find_leaderless(state: ReadOnlyState) -> list[TopicPartition]:
    """Return the partitions in OfflinePartition and NewPartition, except those of topics that are being deleted."""
    waiting = state.list_partitions_in(*_WITHOUT_LEADER)
    return [partition for partition in waiting if not state.is_being_deleted(partition.topic)]


async def on_broker_modified(term: Term, broker_id: BrokerId) -> None:
    """Send all brokers the new listeners of a live broker that rewrote its registration."""
    present = await read_brokers(term, [broker_id])
    known, modified = term.state.brokers.get(broker_id), present.get(broker_id)
    if known is None and modified is not None:
        await on_brokers_changed(term)  # its registration could not be read before
        return
    if known is None or modified is None or modified.epoch != known.epoch or modified == known:
        return
    log.info("broker modified", broker=broker_id)
    listener = term.identity.listeners.links
    if modified.find_endpoint(listener) != known.find_endpoint(listener):
        # Requests that wait in the stream to the former address are lost with it, so the broker is sent everything
        # again.
        await term.channels.remove(broker_id)
        await on_broker_startup(term, {broker_id: modified})
    else:
        term.state.add_broker(modified)
        term.unserved.report([modified])
        term.batch.update_metadata(())


async def read_live_brokers(term: Reads) -> dict[BrokerId, Broker]:
    """Return the registered brokers, watched, except those that do not support the finalized features (KIP-584).

    Such a broker is about to stop. It does not count as alive until it registers again, or the features change. As in
    Kafka, a broker that is served already is not dropped: only its own start keeps a broker out.
    """
    finalized = term.state.finalized_features
    known = term.state.brokers
    live = {}
    for broker_id, broker in (await read_brokers(term)).items():
        is_served = broker_id in known and known[broker_id].epoch == broker.epoch
        reasons = find_incompatibilities(broker, finalized.features) if finalized and not is_served else ()
        if reasons:
            log.error("broker ignored: it does not support the finalized features", broker=broker_id, reasons=reasons)
        else:
            live[broker_id] = broker
    return live


async def read_brokers(term: Reads, ids: Iterable[BrokerId] | None = None) -> dict[BrokerId, Broker]:
    """Return the registered brokers, watched. An unreadable registration is reported and does not count as a broker."""
    if ids is None:
        ids = await _read_registered_ids(term)
    by_path = {paths.broker(broker_id): broker_id for broker_id in ids}
    nodes = await term.watched.read_nodes(list(by_path), lambda path: BrokerModified(by_path[path]))
    brokers: dict[BrokerId, Broker] = {}
    for broker_id, node in zip(by_path.values(), nodes, strict=True):
        if node is None:
            term.state.unusable.clear(paths.broker(broker_id))
            continue
        if broker_id == term.identity.id:
            log.error(
                "a broker registered under the controller's own id and is ignored; start the controller with another --id",
                broker=broker_id,
            )
            continue
        broker = _decode_registration(term.state, broker_id, node)
        if broker is not None:
            brokers[broker_id] = broker
    return brokers


async def _read_registered_ids(term: Reads) -> list[BrokerId]:
    names = await term.watched.read_children(paths.BROKER_IDS, BrokersChanged())
    term.state.unusable.keep_among(paths.BROKER_IDS, names)
    ids = {name: paths.parse_broker_id(name) for name in names}
    for name in (name for name, broker_id in ids.items() if broker_id is None):
        term.state.unusable.report(f"{paths.BROKER_IDS}/{name}", IGNORED, f"{name[:80]!r} is not the id of a broker")
    return [broker_id for broker_id in ids.values() if broker_id is not None]


def _decode_registration(state: ReadOnlyState, broker_id: BrokerId, node: ZkNode) -> Broker | None:
    """Return the broker of a registration.

    If it has become unreadable, return the last known one; None if there is none.
    """
    path = paths.broker(broker_id)
    try:
        broker = codecs.decode_broker(broker_id, node)
    except MalformedZnode as error:
        known = state.brokers.get(broker_id)
        is_of_known = known is not None and known.epoch == node.czxid
        state.unusable.report(path, STAYS_KNOWN if is_of_known else IGNORED, error, broker=broker_id)
        return known if is_of_known else None
    if broker.unusable:
        reasons = "; ".join(broker.unusable)
        state.unusable.report(path, "endpoints of a broker are left out", reasons, broker=broker_id)
    else:
        state.unusable.clear(path)
    return broker
