"""CreateTopics: Kafka's checks in Kafka's order, one atomic write for each topic, and leaders before the answer.

Kafka answers when its metadata cache shows a leader for every partition. Here the controller creates the partitions in
the same event. So the answer waits only for partitions without a live replica.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache
from typing import Final

from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreatableTopicConfigs, CreatableTopicResult, CreateTopicsResponse
from kio.schema.errors import ErrorCode
from kio.static.primitive import i8, i16, i32

from controller_core.admin.pending import Pending
from controller_core.admin.refusals import EXCEEDED, ItemRefused, explain_unknown, make_unwritten_refusal
from controller_core.controller.loop.slices import slice_up, turn_after
from controller_core.controller.operations import topics
from controller_core.controller.serving.served_api import Answer, Charged, ServedApi, Waiting
from controller_core.controller.term.term import Term
from controller_core.controller.znodes.config_writes import ensure_paths, write_config
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import ReplicaAssignment, TopicAssignment
from controller_core.model.quotas.mutation_quota import UNLIMITED, MutationQuota
from controller_core.model.settings import shared
from controller_core.model.topics import topic_names
from controller_core.model.topics.placement import Racks, place_partitions
from controller_core.model.topics.topic_configs import fill_in_defaults, find_complaints, is_true
from controller_core.model.wording import explain_controller_as_replica
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.messages import NO_THROTTLE, throttle_of
from controller_core.zk import codecs, paths
from controller_core.zk.compare_and_set import Unwritten, compare_and_set_each, find_unwritten
from controller_core.zk.session import Create, NodeExists, TooLarge, WriteOp, ZkNode

NOT_GIVEN: Final = -1
"""A count or factor that the request leaves to the cluster's defaults or to the assignment."""

MAX_PARTITIONS_PER_REQUEST: Final = 100_000
"""Most partitions to create in one event. Other requests wait until it is done."""

TOPIC_WEIGHT: Final = 10
"""Weight of the checks of a topic that are independent of its size, in partitions."""

_PLACED_AT_ONCE: Final = 5_000
"""Partitions to place before other tasks on the event loop run. They take a few milliseconds."""

_REMOTE_STORAGE: Final = "remote.storage.enable"
_TOPIC_SOURCE: Final = i8(1)
_DEFAULT_SOURCE: Final = i8(5)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic that may be created."""

    name: TopicName
    assignment: TopicAssignment
    config: Mapping[str, str]
    is_late: bool = False
    """True if the topic is created, but has no leaders yet when the client's timeout ends."""


class Budget:
    """The number of partitions that a request may still create."""

    def __init__(self, partitions: int) -> None:
        self._left = partitions

    def spend(self, partitions: int) -> None:
        """Use up a part of the budget. Raises `ItemRefused` if not enough is left."""
        if partitions > self._left:
            message = f"Excessively large number of partitions per request: at most {MAX_PARTITIONS_PER_REQUEST}."
            raise ItemRefused(ErrorCode.policy_violation, message)
        self._left -= partitions


Outcomes = Mapping[int, NewTopic | ItemRefused]
"""The outcome of each entry of the request, by position."""


async def on_create_topics(term: Term, request: CreateTopicsRequest, quota: MutationQuota) -> Answer:
    """Create the topics that may be created. The others get the error of the first check that they fail.

    The last check is the quota, which is charged for the partitions, unless the request only validates.
    """
    charged = UNLIMITED if request.validate_only else quota
    outcomes: dict[int, NewTopic | ItemRefused] = await _check(term, request.topics, charged)
    if not request.validate_only:
        outcomes |= await _create(term, {at: new for at, new in outcomes.items() if isinstance(new, NewTopic)})
    created = [new.name for new in outcomes.values() if isinstance(new, NewTopic)]
    if created and not request.validate_only and request.timeout <= timedelta():
        outcomes = dict(_mark_timed_out(outcomes, created))
    answer = _response([result async for result in slice_up(_results(request, outcomes))])
    if request.validate_only or not created or request.timeout <= timedelta():
        return _add_throttle_time(answer, quota)
    pending = Pending((partition for name in created for partition in term.state.list_partitions_of(name)), _is_done)
    return Waiting(
        timeout_ms=request.timeout / timedelta(milliseconds=1),
        outcome=lambda term: _add_throttle_time(answer, quota) if pending.is_over(term) else None,
        overdue=lambda term: _add_throttle_time(
            _response(
                _results(
                    request, _mark_timed_out(outcomes, {partition.topic for partition in pending.list_unfinished(term)})
                )
            ),
            quota,
        ),
    )


def refusal(request: CreateTopicsRequest, error_code: ErrorCode) -> CreateTopicsResponse:
    """Return the answer that refuses every topic of the request."""
    return _response(_results(request, dict.fromkeys(range(len(request.topics)), ItemRefused(error_code))))


async def _check(
    term: Term, asked: tuple[CreatableTopic, ...], quota: MutationQuota
) -> dict[int, NewTopic | ItemRefused]:
    entries = Counter(topic.name for topic in asked)
    taken = await _find_taken_names(
        term, [TopicName(name) for name in entries if topic_names.explain_illegal(name) is None]
    )
    normalized = dict(topic_names.group_by_normalized(term.state.topics))
    budget = Budget(MAX_PARTITIONS_PER_REQUEST)
    prohibited = f"Creation of internal topic {topic_names.CLUSTER_METADATA_TOPIC} is prohibited."

    async def outcome(topic: CreatableTopic) -> NewTopic | ItemRefused:
        if TopicName(topic.name) == topic_names.CLUSTER_METADATA_TOPIC:
            return ItemRefused(ErrorCode.invalid_request, prohibited)
        if entries[topic.name] > 1:
            return ItemRefused(ErrorCode.invalid_request, "Found multiple entries for this topic.")
        try:
            new = await _check_topic(term, topic, taken, normalized, budget)
        except ItemRefused as refused:
            return refused
        if not quota.takes(len(new.assignment.partitions)):
            return EXCEEDED
        normalized[topic_names.normalize(new.name)] = new.name
        return new

    def weight(entry: tuple[int, CreatableTopic]) -> int:
        return TOPIC_WEIGHT + max(entry[1].num_partitions, len(entry[1].assignments))

    return {at: await outcome(topic) async for at, topic in slice_up(enumerate(asked), weight)}


async def _check_topic(
    term: Term,
    topic: CreatableTopic,
    taken: Mapping[TopicName, str],
    normalized: Mapping[str, TopicName],
    budget: Budget,
) -> NewTopic:
    """Return the topic to be created. Raises `ItemRefused`."""
    name = TopicName(topic.name)
    if name in term.state.topics and name not in term.state.deletions:
        raise ItemRefused(ErrorCode.topic_already_exists, f"Topic '{name}' already exists.")
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        raise ItemRefused(ErrorCode.invalid_config, f"Null value not supported for topic configs: {','.join(nulls)}")
    replicas = _read_given_replicas(topic, budget) if topic.assignments else await _place_replicas(term, topic, budget)
    illegal = topic_names.explain_illegal(name)
    if illegal is not None:
        raise ItemRefused(ErrorCode.invalid_topic_exception, illegal)
    if name in taken:
        raise ItemRefused(ErrorCode.topic_already_exists, taken[name])
    other = normalized.get(topic_names.normalize(name))
    if other is not None:
        raise ItemRefused(ErrorCode.invalid_topic_exception, f"Topic '{name}' collides with existing topics: {other}")
    _check_replicas(term, replicas)
    config = _check_config(term, topic)
    await turn_after(len(replicas))
    assignment = TopicAssignment(topic_id=term.clock.new_topic_id(), partitions=make_resting_assignments(replicas))
    new = NewTopic(name=name, assignment=assignment, config=config)
    await turn_after(len(replicas))
    why_too_large = term.writer.why_too_large(_writes(new, None))
    if why_too_large is not None:
        raise _make_too_large_refusal(new, why_too_large)
    return new


def _writes(new: NewTopic, left_behind: ZkNode | None) -> list[WriteOp]:
    """Return the transaction that creates a topic, and overwrites the configuration that a former topic may have
    left."""
    return [
        write_config(paths.topic_config(new.name), new.config, left_behind),
        Create(path=paths.topic(new.name), data=codecs.encode_topic(new.assignment)),
    ]


def _make_too_large_refusal(new: NewTopic, why: str) -> ItemRefused:
    message = f"{len(new.assignment.partitions)} partitions and the configuration are too many for one znode: {why}."
    return ItemRefused(ErrorCode.invalid_partitions, message)


def _check_config(term: Term, topic: CreatableTopic) -> dict[str, str]:
    config = {config.name: config.value for config in topic.configs if config.value is not None}
    wrong = find_complaints(config)
    if (
        not wrong
        and is_true(config.get(_REMOTE_STORAGE, ""))
        and not term.cluster_settings.remote_log_storage_system_enable
    ):
        wrong = [
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        ]
    if wrong:
        raise ItemRefused(ErrorCode.invalid_config, "; ".join(wrong))
    return config


def _read_given_replicas(topic: CreatableTopic, budget: Budget) -> dict[PartitionId, tuple[BrokerId, ...]]:
    if topic.num_partitions != NOT_GIVEN or topic.replication_factor != NOT_GIVEN:
        raise ItemRefused(
            ErrorCode.invalid_request,
            "Both numPartitions or replicationFactor and replicasAssignments were set. "
            "Both cannot be used at the same time.",
        )
    budget.spend(len(topic.assignments))
    return {
        PartitionId(assignment.partition_index): tuple(BrokerId(broker) for broker in assignment.broker_ids)
        for assignment in topic.assignments
    }


async def _place_replicas(term: Term, topic: CreatableTopic, budget: Budget) -> dict[PartitionId, tuple[BrokerId, ...]]:
    factor = _factor(term, topic)
    count = _count(term, topic)
    if count <= 0:
        raise ItemRefused(ErrorCode.invalid_partitions, "Number of partitions must be larger than 0.")
    if count > MAX_PARTITIONS_PER_REQUEST:
        message = f"Number of partitions must not be larger than {MAX_PARTITIONS_PER_REQUEST}."
        raise ItemRefused(ErrorCode.invalid_partitions, message)
    if factor <= 0:
        raise ItemRefused(ErrorCode.invalid_replication_factor, "Replication factor must be larger than 0.")
    racks = {broker.id: broker.rack for broker in term.state.brokers.values()}
    if factor > len(racks):
        message = f"Replication factor: {factor} larger than available brokers: {len(racks)}."
        raise ItemRefused(ErrorCode.invalid_replication_factor, message)
    budget.spend(count)
    return await place_in_slices(TopicName(topic.name), range(count), factor, racks)


def _factor(term: Term, topic: CreatableTopic) -> int:
    """Return the replicas of each partition. Raises `ItemRefused` if the request leaves them to an unknown default.

    Creating one replica instead of three would lose data with the first failed disk.
    """
    if topic.replication_factor != NOT_GIVEN:
        return topic.replication_factor
    factor = term.cluster_settings.default_replication_factor
    if factor is None:
        why = f"Give the replication factor: {explain_unknown(term, shared.REPLICATION_FACTOR)}."
        raise ItemRefused(ErrorCode.invalid_replication_factor, why)
    return factor


def _count(term: Term, topic: CreatableTopic) -> int:
    """Return the number of partitions. Raises `ItemRefused` if the request leaves it to an unknown default."""
    if topic.num_partitions != NOT_GIVEN:
        return topic.num_partitions
    count = term.cluster_settings.num_partitions
    if count is None:
        why = f"Give the number of partitions: {explain_unknown(term, shared.PARTITIONS)}."
        raise ItemRefused(ErrorCode.invalid_partitions, why)
    return count


def make_resting_assignments(
    replicas: Mapping[PartitionId, tuple[BrokerId, ...]],
) -> dict[PartitionId, ReplicaAssignment]:
    """Return the assignments of new partitions by number. Partitions with the same replicas share one object."""
    shared = {brokers: ReplicaAssignment(replicas=brokers) for brokers in set(replicas.values())}
    return {number: shared[replicas[number]] for number in sorted(replicas)}


async def place_in_slices(
    topic: TopicName, numbers: range, replication_factor: int, racks: Racks
) -> dict[PartitionId, tuple[BrokerId, ...]]:
    """Return the replicas of a topic's partitions. Raises `NotEnoughBrokers`."""
    parts = (numbers[at : at + _PLACED_AT_ONCE] for at in range(0, len(numbers), _PLACED_AT_ONCE))
    replicas: dict[PartitionId, tuple[BrokerId, ...]] = {}
    async for part in slice_up(parts, len):
        replicas |= place_partitions(topic, map(PartitionId, part), replication_factor, racks)
    return replicas


def read_numbers(term: Term, topic: CreatableTopic) -> tuple[int, int]:
    """Return the partitions and the replicas of each that a new topic would have. Raises `ItemRefused` if the request
    leaves them to an unknown default."""
    if topic.assignments:
        return len(topic.assignments), len(topic.assignments[0].broker_ids)
    return _count(term, topic), _factor(term, topic)


def _check_replicas(term: Term, replicas: Mapping[PartitionId, tuple[BrokerId, ...]]) -> None:
    """Check the replicas like Kafka. It permits missing brokers in an assignment: the partition waits for them."""
    invalid = ErrorCode.invalid_replica_assignment
    distinct = dict.fromkeys(replicas.values())  # far fewer than partitions
    if len({len(brokers) for brokers in distinct}) != 1 or not all(distinct):
        raise ItemRefused(invalid, "All partitions should have the same number of replicas")
    for brokers in distinct:
        if len(set(brokers)) != len(brokers):
            number = _first_with(brokers, replicas)
            raise ItemRefused(invalid, f"Duplicate replica assignment found: partition {number} on {list(brokers)}")
        if term.identity.id in brokers:
            raise ItemRefused(invalid, explain_controller_as_replica(term.identity.id))
        if min(brokers) < 0:
            number = _first_with(brokers, replicas)
            raise ItemRefused(invalid, f"Partition {number} names a broker id below 0: {list(brokers)}")
    if sorted(replicas) != list(range(len(replicas))):
        raise ItemRefused(invalid, "partitions should be a consecutive 0-based integer sequence")


def _first_with(brokers: tuple[BrokerId, ...], replicas: Mapping[PartitionId, tuple[BrokerId, ...]]) -> PartitionId:
    return next(number for number, each in replicas.items() if each == brokers)


async def _find_taken_names(term: Term, names: list[TopicName]) -> dict[TopicName, str]:
    """Return those of the names that exist in ZooKeeper, with the error message."""
    nodes = await term.zk.read_many([path for name in names for path in (paths.delete_topic(name), paths.topic(name))])
    marks, znodes = nodes[::2], nodes[1::2]
    existing = {
        name: f"Topic '{name}' already exists." for name, node in zip(names, znodes, strict=True) if node is not None
    }
    marked = {name: f"Topic '{name}' is marked for deletion." for name, node in zip(names, marks, strict=True) if node}
    return existing | marked


async def _create(term: Term, wanted: Mapping[int, NewTopic]) -> dict[int, ItemRefused]:
    """Write each topic with its configuration, and create its partitions. Return the topics that failed."""
    await ensure_paths(term, [paths.CONFIG, paths.TOPIC_CONFIGS, paths.BROKERS, paths.TOPICS])
    late: dict[int, ItemRefused] = {}

    async def attempt(remaining: Sequence[int]) -> dict[int, Unwritten]:
        left_behind = await term.zk.read_many([paths.topic_config(wanted[at].name) for at in remaining])
        found = zip(((at, wanted[at]) for at in remaining), left_behind, strict=True)
        writes = {at: _writes(new, config) async for (at, new), config in slice_up(found, _weight)}
        failed = (await term.writer.write(writes)).failed
        for at, error in failed.items():
            name = wanted[at].name
            if isinstance(error, NodeExists) and error.failed.op.path == paths.topic(name):
                late[at] = ItemRefused(ErrorCode.topic_already_exists, f"Topic '{name}' already exists.")
            elif isinstance(error, TooLarge):
                late[at] = _make_too_large_refusal(wanted[at], str(error))
        return find_unwritten({at: error for at, error in failed.items() if at not in late})

    late |= {at: make_unwritten_refusal(error) for at, error in (await compare_and_set_each(wanted, attempt)).items()}
    created = [new.name for at, new in wanted.items() if at not in late]
    if created:
        await topics.on_new_topic_creation(term, created)
    return late


def _weight(found: tuple[tuple[int, NewTopic], ZkNode | None]) -> int:
    (_, new), _ = found
    return TOPIC_WEIGHT + len(new.assignment.partitions)


def _is_done(term: Term, partition: TopicPartition) -> bool:
    return term.state.is_leader_live(partition) or not term.state.has(partition)


def _mark_timed_out(outcomes: Outcomes, names: Iterable[TopicName]) -> Outcomes:
    late = set(names)
    return {
        at: replace(outcome, is_late=True) if isinstance(outcome, NewTopic) and outcome.name in late else outcome
        for at, outcome in outcomes.items()
    }


def _results(request: CreateTopicsRequest, outcomes: Outcomes) -> Iterator[CreatableTopicResult]:
    for at, topic in enumerate(request.topics):
        yield _result(topic, outcomes[at], is_created=not request.validate_only)


def _response(results: Iterable[CreatableTopicResult]) -> CreateTopicsResponse:
    return CreateTopicsResponse(throttle_time=NO_THROTTLE, topics=tuple(results))


def _add_throttle_time(response: CreateTopicsResponse, quota: MutationQuota) -> CreateTopicsResponse:
    return replace(response, throttle_time=throttle_of(quota.throttle_ms()))


def _result(topic: CreatableTopic, outcome: NewTopic | ItemRefused, *, is_created: bool) -> CreatableTopicResult:
    if isinstance(outcome, ItemRefused):
        return CreatableTopicResult(
            name=topic.name,
            topic_id=None,
            error_code=outcome.error_code,
            error_message=outcome.message,
            configs=(),
        )
    topic_id = outcome.assignment.topic_id if is_created else None
    if outcome.is_late:
        code = ErrorCode.request_timed_out
        return CreatableTopicResult(name=topic.name, topic_id=topic_id, error_code=code, error_message=None, configs=())
    partitions = outcome.assignment.partitions
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_code=ErrorCode.none,
        error_message=None,
        num_partitions=i32(len(partitions)),
        replication_factor=i16(len(partitions[PartitionId(0)].replicas)),
        configs=_effective(frozenset(outcome.config.items())),
    )


@lru_cache(maxsize=64)
def _effective(given: frozenset[tuple[str, str]]) -> tuple[CreatableTopicConfigs, ...]:
    """Return all configurations of a topic. Topics that are created together mostly have the same ones."""
    config = dict(given)
    return tuple(
        CreatableTopicConfigs(
            name=name,
            value=value,
            read_only=False,
            config_source=_TOPIC_SOURCE if name in config else _DEFAULT_SOURCE,
            is_sensitive=False,
        )
        for name, value in fill_in_defaults(config).items()
    )


API: Final = ServedApi(
    versions=Versions(CreateTopicsRequest, oldest=2),
    answer=Charged(answer=on_create_topics, strict_since=6),
    refuse=refusal,
    needs_cluster_settings=True,
)
