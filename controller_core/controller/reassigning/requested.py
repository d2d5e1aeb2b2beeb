"""Validation of requested reassignments: those in `/admin/reassign_partitions`, and limits for all requests."""

from collections import defaultdict
from collections.abc import Mapping

import structlog

from controller_core.controller.reassigning import completion, reassignment
from controller_core.controller.reassigning.room import find_targets_without_room
from controller_core.controller.term.rights import Reads
from controller_core.controller.term.term import Term
from controller_core.controller.znodes.reassignment_znode import Targets, read_requests, remove_requests
from controller_core.controller.znodes.topic_znodes import read_topics
from controller_core.model.ids import BrokerId, TopicName, TopicPartition
from controller_core.model.reassignment import begin_reassignment
from controller_core.model.wording import explain_controller_as_replica, list_some, name_subject

log = structlog.get_logger()


async def on_reassignments_requested(term: Term) -> None:
    """Begin what `/admin/reassign_partitions` requests, and remove from it what is impossible or done."""
    targets = await read_requests(term)
    unheard_of = await _unheard_of(term, targets)
    known = {partition: target for partition, target in targets.items() if partition not in unheard_of}
    await completion.finish_early(term, known)
    idle = {
        partition: target
        for partition, target in known.items()
        if is_done(term, partition, target) or not _can_be_done(term, partition, target)
    }
    running = term.state.reassignments
    wanted = {
        partition: target
        for partition, target in known.items()
        if partition not in idle and not ((run := running.get(partition)) and run.target == target)
    }
    refused = await find_targets_without_room(term, wanted)
    _report(refused)
    await remove_requests(term, idle | {partition: wanted[partition] for partition in refused})
    beginning = {partition: target for partition, target in wanted.items() if partition not in refused}
    begun = await reassignment.begin(term, beginning)
    await remove_requests(term, {p: target for p, target in beginning.items() if p not in begun})


def _report(refused: Mapping[TopicPartition, str]) -> None:
    """Log one line for each topic. Partitions of a topic are refused together, and there may be thousands."""
    by_topic: defaultdict[TopicName, list[TopicPartition]] = defaultdict(list)
    for partition in refused:
        by_topic[partition.topic].append(partition)
    for partitions in by_topic.values():
        log.error(
            "reassignments refused", partitions=list_some(list(map(str, partitions))), reason=refused[partitions[0]]
        )


def is_done(term: Reads, partition: TopicPartition, target: tuple[BrokerId, ...]) -> bool:
    """Return True if the partition has the target's replicas, and no reassignment runs."""
    return (
        partition not in term.state.reassignments
        and term.state.has(partition)
        and term.state.assignment(partition).replicas == target
    )


def find_not_live(term: Reads, partition: TopicPartition, target: tuple[BrokerId, ...]) -> list[BrokerId]:
    """Return the brokers that are not live and would have to begin a replica, also for a running reassignment."""
    present = reassignment.find_full_assignment(term.state, partition).origin if term.state.has(partition) else ()
    return [broker for broker in target if broker not in present and broker not in term.state.live]


def explain_message_loss(term: Reads, partition: TopicPartition, target: tuple[BrokerId, ...]) -> str | None:
    """Return the reason to refuse a target that drops all replicas with all acknowledged messages; None if it is safe.

    The replicas of a replaced target are deleted at once, and they may have messages that no other replica has.
    """
    state = term.state.states.get(partition)
    replicas = begin_reassignment(reassignment.find_full_assignment(term.state, partition), target).replicas
    if state is None or not set(replicas).isdisjoint(state.leader_and_isr.isr):
        return None
    return f"it would delete all in-sync replicas, {list(state.leader_and_isr.isr)}: include one of them"


async def _unheard_of(term: Reads, targets: Targets) -> set[TopicPartition]:
    """Return the partitions that ZooKeeper has and this term does not know yet.

    Their requests wait for the event that adds them.
    """
    unknown = [p for p in targets if not term.state.has(p) and p.topic not in term.state.deletions]
    znodes = await read_topics(term, {partition.topic for partition in unknown}) if unknown else {}
    return {p for p in unknown if (znode := znodes.get(p.topic)) and p.partition in znode.content.partitions}


def _can_be_done(term: Reads, partition: TopicPartition, target: tuple[BrokerId, ...]) -> bool:
    reason = _why_not(term, partition, target)
    if reason is not None:
        log.error("reassignment refused", partition=str(partition), target=list(target), reason=reason)
    return reason is None


def _why_not(term: Reads, partition: TopicPartition, target: tuple[BrokerId, ...]) -> str | None:
    if not term.state.has(partition):
        return "there is no such partition"
    if partition.topic in term.state.deletions:
        return "its topic is being deleted"
    run = term.state.reassignments.get(partition)
    if run is not None and run.target == target:
        return None
    missing = find_not_live(term, partition, target)
    if term.identity.id in missing:
        return explain_controller_as_replica(term.identity.id)
    if missing:
        return f"{name_subject('broker', missing)} not live: start every broker first, or name live ones"
    return explain_message_loss(term, partition, target)
