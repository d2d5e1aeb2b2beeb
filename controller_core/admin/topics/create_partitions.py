"""CreatePartitions: adds partitions to a topic. The topic id and the existing partitions are written back unchanged."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_partitions.v3.response import CreatePartitionsResponse, CreatePartitionsTopicResult
from kio.schema.errors import ErrorCode

from controller_core.admin.pending import Pending
from controller_core.admin.refusals import EXCEEDED, TIMED_OUT, ItemRefused, make_unwritten_refusal
from controller_core.admin.topics.create_topics import (
    MAX_PARTITIONS_PER_REQUEST,
    TOPIC_WEIGHT,
    Budget,
    make_resting_assignments,
    place_in_slices,
)
from controller_core.controller.loop.slices import slice_up, turn_after
from controller_core.controller.operations import topics
from controller_core.controller.serving.served_api import Answer, Charged, ServedApi, Waiting
from controller_core.controller.term.term import Term
from controller_core.controller.znodes.topic_znodes import TopicZnode, read_topics
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import TopicAssignment
from controller_core.model.quotas.mutation_quota import UNLIMITED, MutationQuota
from controller_core.model.topics import topic_names
from controller_core.model.topics.partition_numbers import refuse_additions
from controller_core.model.topics.placement import NotEnoughBrokers
from controller_core.model.wording import explain_controller_as_replica, list_some
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.messages import throttle_of
from controller_core.zk import codecs, paths
from controller_core.zk.compare_and_set import Unwritten, compare_and_set_each, find_unwritten
from controller_core.zk.session import NoNode, SetData, WriteOp


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """A topic that may grow, and the new content of its znode."""

    name: TopicName
    znode: TopicZnode
    assignment: TopicAssignment

    @property
    def write(self) -> WriteOp:
        data = codecs.encode_topic(self.assignment)
        return SetData(path=paths.topic(self.name), data=data, version=self.znode.version)

    @property
    def increment(self) -> int:
        return len(self.assignment.partitions) - len(self.znode.content.partitions)

    @property
    def added(self) -> list[TopicPartition]:
        return [
            TopicPartition(self.name, p) for p in self.assignment.partitions if p not in self.znode.content.partitions
        ]


Outcomes = Mapping[int, Growth | ItemRefused]
"""The outcome of each entry of the request, by position."""


async def on_create_partitions(term: Term, request: CreatePartitionsRequest, quota: MutationQuota) -> Answer:
    """Add the partitions that may be added. Other topics get the error of the first check that they fail.

    The last check is the quota, which is charged for the new partitions, unless the request only validates.
    """
    outcomes = await _check(term, dict(enumerate(request.topics)))
    if not request.validate_only:
        outcomes = await _write(term, request, await _charge(outcomes, quota))
    grown = list(_select_growths(outcomes).values())
    if request.validate_only or not grown:
        return _response(request, outcomes, quota)
    if request.timeout <= timedelta():
        return _response(request, _mark_timed_out(outcomes, {growth.name for growth in grown}), quota)
    pending = Pending((partition for growth in grown for partition in growth.added), _is_done)
    return Waiting(
        timeout_ms=request.timeout / timedelta(milliseconds=1),
        outcome=lambda term: _response(request, outcomes, quota) if pending.is_over(term) else None,
        overdue=lambda term: _response(
            request, _mark_timed_out(outcomes, {partition.topic for partition in pending.list_unfinished(term)}), quota
        ),
    )


def refusal(request: CreatePartitionsRequest, error_code: ErrorCode) -> CreatePartitionsResponse:
    """The answer that refuses every topic of the request."""
    return _response(request, dict.fromkeys(range(len(request.topics)), ItemRefused(error_code)))


async def _check(term: Term, asked: Mapping[int, CreatePartitionsTopic]) -> dict[int, Growth | ItemRefused]:
    entries = Counter(topic.name for topic in asked.values())
    legal = [TopicName(name) for name in entries if topic_names.explain_illegal(name) is None]
    znodes = await read_topics(term, legal)
    budget = Budget(MAX_PARTITIONS_PER_REQUEST)

    async def outcome(topic: CreatePartitionsTopic) -> Growth | ItemRefused:
        if entries[topic.name] > 1:
            return ItemRefused(ErrorCode.invalid_request, "Duplicate topic in request.")
        try:
            return await _check_topic(term, topic, znodes.get(TopicName(topic.name)), budget)
        except ItemRefused as refused:
            return refused

    def weight(entry: tuple[int, CreatePartitionsTopic]) -> int:
        return TOPIC_WEIGHT + max(entry[1].count, 0)

    return {at: await outcome(topic) async for at, topic in slice_up(asked.items(), weight)}


async def _check_topic(term: Term, topic: CreatePartitionsTopic, znode: TopicZnode | None, budget: Budget) -> Growth:
    """Return the grown topic. Raises `ItemRefused`."""
    name = TopicName(topic.name)
    if name in term.state.deletions:
        raise ItemRefused(ErrorCode.invalid_topic_exception, "The topic is queued for deletion.")
    if removed := term.state.removals.list_numbers_of(name):
        message = f"Partitions of the topic are being removed. Wait until they are gone: {list_some(sorted(removed))}."
        raise ItemRefused(ErrorCode.invalid_partitions, message)
    if znode is not None and any(assignment.is_being_reassigned for assignment in znode.content.partitions.values()):
        message = f"A partition reassignment is in progress for the topic '{name}'."
        raise ItemRefused(ErrorCode.reassignment_in_progress, message)
    if znode is None or not znode.content.partitions:
        raise ItemRefused(ErrorCode.unknown_topic_or_partition, f"The topic '{name}' does not exist.")
    if znode.content.unusable:
        bad = ", ".join(entry.key[:80] for entry in znode.content.unusable[:5])
        message = f"The entries of some partitions in {paths.topic(name)} cannot be read. Correct them first: {bad}."
        raise ItemRefused(ErrorCode.invalid_partitions, message)
    present = znode.content.partitions
    increment = topic.count - len(present)
    if increment < 0:
        message = f"Topic currently has {len(present)} partitions, which is higher than the requested {topic.count}."
        raise ItemRefused(ErrorCode.invalid_partitions, message)
    if increment == 0:
        raise ItemRefused(ErrorCode.invalid_partitions, f"Topic already has {len(present)} partitions.")
    following = PartitionId(max(present) + 1)
    for reason in refuse_additions(present.keys(), [following]).values():
        # The new numbers follow from the number of partitions, so after a gap they would be those of others.
        message = f"Partition {following} cannot be added: {reason}. Request it in {paths.PARTITIONS_ADD}."
        raise ItemRefused(ErrorCode.invalid_partitions, message)
    if topic.count > MAX_PARTITIONS_PER_REQUEST:
        message = f"Number of partitions must not be larger than {MAX_PARTITIONS_PER_REQUEST}."
        raise ItemRefused(ErrorCode.invalid_partitions, message)
    budget.spend(increment)
    new = range(len(present), topic.count)
    factor = len(present[PartitionId(0)].replicas) if PartitionId(0) in present else 1
    replicas = (
        await _place_replicas(term, name, new, factor)
        if topic.assignments is None
        else _read_given_replicas(term, topic, new, factor)
    )
    partitions = {**present, **make_resting_assignments(replicas)}
    await turn_after(len(partitions))
    growth = Growth(name=name, znode=znode, assignment=replace(znode.content, partitions=partitions))
    why_too_large = term.writer.why_too_large([growth.write])
    if why_too_large is not None:
        message = f"{topic.count} partitions are too many for one znode: {why_too_large}."
        raise ItemRefused(ErrorCode.invalid_partitions, message)
    return growth


async def _place_replicas(
    term: Term, name: TopicName, new: range, factor: int
) -> Mapping[PartitionId, tuple[BrokerId, ...]]:
    racks = {broker.id: broker.rack for broker in term.state.brokers.values()}
    try:
        return await place_in_slices(name, new, factor, racks)
    except NotEnoughBrokers as error:
        message = f"Replication factor: {factor} larger than available brokers: {len(racks)}."
        raise ItemRefused(ErrorCode.invalid_replication_factor, message) from error


def _read_given_replicas(
    term: Term, topic: CreatePartitionsTopic, new: range, factor: int
) -> Mapping[PartitionId, tuple[BrokerId, ...]]:
    invalid = ErrorCode.invalid_replica_assignment
    lists = [tuple(BrokerId(broker) for broker in given.broker_ids) for given in topic.assignments or ()]
    unknown = sorted({broker for brokers in lists for broker in brokers} - term.state.brokers.keys())
    if term.identity.id in unknown:
        raise ItemRefused(invalid, explain_controller_as_replica(term.identity.id))
    if unknown:
        raise ItemRefused(invalid, f"Unknown broker(s) in replica assignment: {', '.join(map(str, unknown))}.")
    if len(lists) != len(new):
        message = f"Increasing the number of partitions by {len(new)} but {len(lists)} assignments provided."
        raise ItemRefused(invalid, message)
    replicas = dict(zip(map(PartitionId, new), lists, strict=True))
    for number, brokers in replicas.items():
        if not brokers:
            raise ItemRefused(invalid, f"Cannot have replication factor of 0 for partition id {number}.")
        if len(set(brokers)) != len(brokers):
            message = f"Duplicate brokers not allowed in replica assignment: {list(brokers)} for partition id {number}."
            raise ItemRefused(invalid, message)
    odd = {number: len(brokers) for number, brokers in replicas.items() if len(brokers) != factor}
    if odd:
        message = (
            f"Inconsistent replication factor between partitions, partition 0 has {factor} while partitions "
            f"{list(odd)} have replication factors {list(odd.values())}, respectively."
        )
        raise ItemRefused(invalid, message)
    return replicas


async def _write(
    term: Term, request: CreatePartitionsRequest, outcomes: dict[int, Growth | ItemRefused]
) -> dict[int, Growth | ItemRefused]:
    """Write the checked topics. Check a topic again if another client wrote it since."""
    settled = dict(outcomes)

    async def attempt(remaining: Sequence[int]) -> dict[int, Unwritten]:
        growing = _select_growths({at: settled[at] for at in remaining})
        failed = (await term.writer.write({at: [growth.write] for at, growth in growing.items()})).failed
        await topics.on_topics_modified(term, [growth.name for at, growth in growing.items() if at not in failed])
        gone = ItemRefused(ErrorCode.unknown_topic_or_partition, "The topic was deleted during the request.")
        settled.update({at: gone for at, error in failed.items() if isinstance(error, NoNode)})
        conflicts = find_unwritten({at: error for at, error in failed.items() if not isinstance(error, NoNode)})
        settled.update(await _check(term, {at: request.topics[at] for at in conflicts}))
        return {at: conflict for at, conflict in conflicts.items() if isinstance(settled[at], Growth)}

    beaten = await compare_and_set_each(_select_growths(outcomes), attempt)
    return settled | {at: make_unwritten_refusal(error) for at, error in beaten.items()}


async def _charge(outcomes: dict[int, Growth | ItemRefused], quota: MutationQuota) -> dict[int, Growth | ItemRefused]:
    return {
        at: EXCEEDED if isinstance(outcome, Growth) and not quota.takes(outcome.increment) else outcome
        async for at, outcome in slice_up(outcomes.items())
    }


def _select_growths(outcomes: Outcomes) -> dict[int, Growth]:
    return {at: outcome for at, outcome in outcomes.items() if isinstance(outcome, Growth)}


def _is_done(term: Term, partition: TopicPartition) -> bool:
    return term.state.is_leader_live(partition) or not term.state.has(partition)


def _mark_timed_out(outcomes: Outcomes, late: set[TopicName]) -> Outcomes:
    return {
        at: TIMED_OUT if isinstance(outcome, Growth) and outcome.name in late else outcome
        for at, outcome in outcomes.items()
    }


def _response(
    request: CreatePartitionsRequest, outcomes: Outcomes, quota: MutationQuota = UNLIMITED
) -> CreatePartitionsResponse:
    by_name = {topic.name: outcomes[at] for at, topic in enumerate(request.topics)}
    return CreatePartitionsResponse(
        throttle_time=throttle_of(quota.throttle_ms()),
        results=tuple(
            CreatePartitionsTopicResult(
                name=name,
                error_code=outcome.error_code if isinstance(outcome, ItemRefused) else ErrorCode.none,
                error_message=outcome.message if isinstance(outcome, ItemRefused) else None,
            )
            for name, outcome in by_name.items()
        ),
    )


API: Final = ServedApi(
    versions=Versions(CreatePartitionsRequest, oldest=0),
    answer=Charged(answer=on_create_partitions, strict_since=3),
    refuse=refusal,
)
