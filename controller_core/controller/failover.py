"""`on_controller_failover` of seed 000: a new controller loads the cluster, and sends the brokers its state.

ZooKeeper has everything that the last controller wrote but did not send, or began but did not finish. So the new one
sends every replica its state again, elects leaders where there are none, and resumes what is in progress.
"""

from collections.abc import Iterable, Mapping

import structlog

from controller_core.controller.loop.events import IsrChangesNotified, JournalDue, LedgerDue
from controller_core.controller.operations import (
    brokers,
    config_changes,
    controlled_shutdown,
    deletion,
    elections,
    features,
    leader_rebalance,
    log_dirs,
    startup,
)
from controller_core.controller.operations.topics import add_topics, read_topic_names
from controller_core.controller.reassigning import drop, reassignment, requested, throttle_cleanup
from controller_core.controller.resizing import adding, removing
from controller_core.controller.sending.prepared_topic import Prepared
from controller_core.controller.term import epoch_raise
from controller_core.controller.term.rights import Remembers, Writes
from controller_core.controller.term.term import Term
from controller_core.controller.znodes import (
    delegation_tokens,
    deleted_topics,
    recorded_configs,
    removed_replicas,
    subtrees,
)
from controller_core.controller.znodes.partition_states import read_states
from controller_core.controller.znodes.topic_znodes import TopicZnode, read_topics
from controller_core.model.ids import TopicName, TopicPartition
from controller_core.zk import paths
from controller_core.zk.session import Delete

log = structlog.get_logger()


async def on_controller_failover(term: Term) -> None:
    """Run onControllerFailover: its steps in the order of the specification."""
    repaired, prepared = await _load(term)
    # Brokers reject LeaderAndIsr for brokers that they do not know to be alive.
    term.batch.update_metadata(())
    removed_replicas.clean_up(term, term.state.brokers)
    deleted_topics.make_forgotten(term, term.state.brokers)
    term.send_requests()
    partitions = list(term.state.all_partitions())
    # 1. replicaStateMachine.startup()
    whole = await startup.find_whole_topics(term.state, prepared)
    startup.start_up_replicas(term, partitions, whole)
    # Send this now: brokers load their replicas while leaders are elected for the offline partitions.
    await term.send_all_requests()
    # 2. partitionStateMachine.startup()
    await startup.start_up_partitions(term, partitions, whole)
    await controlled_shutdown.resume(term)
    await drop.expel_dropped(term, [name for name in term.state.topics if name not in whole])
    await reassignment.announce(term, repaired)
    # 3. resume partition reassignment, if any
    await reassignment.resume(term)
    await requested.on_reassignments_requested(term)
    await throttle_cleanup.mark_begun(term, term.state.reassignments)
    await throttle_cleanup.sweep(term)
    await deletion.resume(term)
    await adding.on_partitions_add(term)
    await removing.on_partitions_remove(term)
    # 4. resume preferred leader election, if any
    await elections.on_preferred_election_requested(term)
    leader_rebalance.start_balancing(term)
    delegation_tokens.start_expiring(term)
    term.enqueue(LedgerDue())
    if term.journal.is_kept:
        term.enqueue_later(JournalDue(), term.journal.alive_interval_ms)


async def _load(term: Term) -> tuple[list[TopicPartition], Prepared]:
    """Read everything, and watch it from now on.

    Return the reassigned partitions whose assignment was repaired, and the requests that the standby prepared.
    """
    await features.set_up(term)
    await _remove_isr_notifications(term)
    await log_dirs.remove_notifications(term)
    await config_changes.watch_configs(term)
    for broker in (await brokers.read_live_brokers(term)).values():
        term.state.add_broker(broker)
        term.channels.add(broker)
    term.unserved.report_all(term.state.brokers.values())
    config_changes.load_static_configs(term)
    await recorded_configs.load_of_brokers(term)
    znodes = await read_topics(term, await read_topic_names(term), watched=True)
    prepared = _take_over_known(term, znodes)
    phantoms = await add_topics(term, {name: z for name, z in znodes.items() if name not in term.state.topics})
    await recorded_configs.load_of_topics(term, term.state.topics)
    await _load_states(term, [name for name in term.state.topics if name not in prepared])
    await epoch_raise.rise_above_states(term)
    await removing.load(term)
    await deletion.load_deletions(term)
    await removed_replicas.load(term)
    await deleted_topics.load(term)
    term.state.mark_loaded()
    await term.journal.begin_term()
    log.info(
        "cluster loaded",
        brokers=sorted(term.state.brokers),
        topics=len(term.state.topics),
        partitions=len(term.state.states),
        reassignments=len(term.state.reassignments),
        deletions=len(term.state.deletions),
        partition_removals=len(term.state.removals),
        removed_replicas=len(term.state.removed_replicas),
    )
    return [partition for partition in phantoms if partition in term.state.states], prepared


def _take_over_known(term: Remembers, znodes: Mapping[TopicName, TopicZnode]) -> Prepared:
    """Take over what the standby read, of topics whose znodes are unchanged and need no repair.

    The znodes were read after the role was won. By then the standby was notified of every earlier change, and had
    dropped the changed topics.
    """
    known = term.standby.take()
    to_mend = {partition.topic for partition in known.state.list_partitions_on([term.identity.id])}
    for name, (_, content) in list(known.znodes.items()):
        znode = znodes.get(name)
        # For an unchanged znode `read_topics` returns the standby's own content, so identity is enough.
        if znode is None or znode.content is not content or content.topic_id is None or name in to_mend:
            known.drop(name)
    term.state.take_over(known.state)
    for name in term.state.topics:
        if name not in known.prepared:
            reassignment.remember_running(term, name, znodes[name].content)
    return known.prepared


async def _load_states(term: Remembers, topics: Iterable[TopicName]) -> None:
    """Load the states of the topics' partitions, except for those that the standby has read."""
    states = term.state.states
    unknown = [
        partition for name in topics for partition in term.state.list_partitions_of(name) if partition not in states
    ]
    log.info("reading states", known=len(states), unknown=len(unknown))
    term.state.set_states(await read_states(term.zk, unknown, term.state.unusable))


async def _remove_isr_notifications(term: Writes) -> None:
    """Remove the notifications unread: all states are read after this, and include what they announce."""
    names = await term.watched.read_children(paths.ISR_CHANGE_NOTIFICATION, IsrChangesNotified())
    notifications = [f"{paths.ISR_CHANGE_NOTIFICATION}/{name}" for name in names]
    await subtrees.delete_handled(term, [Delete(path=path) for path in notifications])
