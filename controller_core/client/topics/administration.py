"""Creates, alters, deletes, lists and describes topics (KIP-4, section 3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v11.response import MetadataResponseTopic
from kio.schema.types import TopicName as WireTopicName

from controller_core.client.cluster import Call
from controller_core.client.configs import alter_configs, keeps_logs, read_own_configs
from controller_core.client.errors import AdminError, InvalidArgument, require
from controller_core.client.reassigning.assignments import Replicas, require_sound
from controller_core.client.reassigning.reassignments import request_moves
from controller_core.client.snapshot import read_topic
from controller_core.client.topics.requests import add_partitions, create_topic, delete_topic
from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from controller_core.model.snapshot import PartitionSnapshot

_MOST_PARTITIONS: Final = (1 << 31) - 1
_MOST_REPLICAS: Final = (1 << 15) - 1
"""The largest numbers that the requests can carry."""

Assignment = Mapping[PartitionId, Replicas]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicList:
    """The topics of a cluster."""

    alive: tuple[TopicName, ...]
    marked_for_deletion: tuple[TopicName, ...] | None
    """None: unknown, because only ZooKeeper knows them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    """A topic with its configurations and partitions."""

    topic: TopicName
    configs: Mapping[str, str | None]
    """Configurations that are set on this topic. A secret has no value."""
    partitions: tuple[PartitionSnapshot, ...]

    @property
    def replication_factor(self) -> int:
        """The number of replicas of the first partition, as in Kafka's tool."""
        return len(self.partitions[0].replicas) if self.partitions else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredStep:
    """A step of an alteration, and its error, if it failed."""

    what: str
    error: AdminError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """The steps of an alteration, in order. A failed step is the last one."""

    steps: tuple[AlteredStep, ...]

    @property
    def error(self) -> AdminError | None:
        """The error of the failed step."""
        return next((step.error for step in self.steps if step.error is not None), None)


async def create(
    call: Call,
    topic: str,
    *,
    partitions: int | None,
    replication_factor: int | None,
    assignment: Assignment | None,
    configs: Mapping[str, str],
    validate_only: bool,
) -> None:
    """Create a topic. Without numbers the cluster's defaults apply. Raises `Refused`."""
    if assignment is not None:
        require_sound(assignment)
        if partitions is not None or replication_factor is not None:
            raise InvalidArgument("give either numbers of partitions and replicas, or an assignment of replicas")
    _require_in_range("partitions", partitions, _MOST_PARTITIONS)
    _require_in_range("the replication factor", replication_factor, _MOST_REPLICAS)
    result = await create_topic(
        call.target_controller(changes_nothing=validate_only),
        topic,
        configs,
        call.for_server,
        partitions=partitions,
        replication_factor=replication_factor,
        assignment=assignment,
        validate_only=validate_only,
    )
    result.require(f"topic {topic}")


async def delete(call: Call, topic: str) -> None:
    """Mark a topic for deletion. It is gone when its replicas are. Raises `Refused`."""
    result = await delete_topic(call.target_controller(), topic, call.for_server)
    result.require(f"topic {topic}")


async def list_alive(call: Call) -> tuple[TopicName, ...]:
    """Return the topics that brokers know, by name."""
    metadata = await call.metadata(of_all=True)
    return tuple(sorted(TopicName(topic.name) for topic in metadata.topics if topic.name is not None))


async def describe(call: Call, *topics: str) -> tuple[TopicDescription, ...]:
    """Describe topics, in the given order. Raises `Refused` for a topic that does not exist."""
    found = {topic.name: topic for topic in (await call.metadata(*topics)).topics}
    for name in topics:
        known = found.get(WireTopicName(name))
        require(f"topic {name}", known.error_code if known else ErrorCode.unknown_topic_or_partition, None)
    configs = await read_own_configs(call, topics)
    return tuple(_describe(found[WireTopicName(name)], configs[name]) for name in topics)


async def alter(
    call: Call,
    topic: str,
    *,
    partitions: int | None,
    assignment: Assignment | None,
    added_configs: Mapping[str, str],
    deleted_configs: Sequence[str],
    validate_only: bool = False,
) -> Alteration:
    """Alter configurations, then add partitions, then move existing ones. Changes that are already in place are not
    steps.

    An assignment covers all partitions, as in `kafka-topics --alter`. Changes that are known to fail are refused as a
    whole before anything is done: raises `Refused` and `InvalidArgument`. Later failures are in the result. With
    `validate_only`, the result has the steps that would be done."""
    (before,) = await describe(call, topic)
    if partitions is None and assignment is not None:
        partitions = len(assignment)
    _require_possible(before, partitions, assignment, added_configs, deleted_configs)
    moves = _find_moves(before, assignment)
    await _require_live(call, moves)
    count = len(before.partitions) if partitions is None else partitions
    grows = count > len(before.partitions)
    # Validate every step before the first one is done, so that a refusal changes nothing.
    if added_configs or deleted_configs:
        await _alter_configs(call, topic, added_configs, deleted_configs, validate_only=True)
    if grows:
        await _add_partitions(call, before, count, assignment, validate_only=True)
    added = {name: value for name, value in added_configs.items() if before.configs.get(name) != value}
    deleted = [name for name in deleted_configs if name in before.configs]
    steps: list[AlteredStep] = []
    step = ""
    try:
        if added or deleted:
            step = f"configurations: {', '.join([*added, *deleted])}"
            if not validate_only:
                await _alter_configs(call, topic, added, deleted, validate_only=False)
            steps.append(AlteredStep(what=step))
        if grows:
            step = f"partitions: {len(before.partitions)} to {count}"
            if not validate_only:
                await _add_partitions(call, before, count, assignment, validate_only=False)
            steps.append(AlteredStep(what=step))
        step = f"moves of {', '.join(map(str, sorted(moves)))}"
        refused = await request_moves(call, moves) if moves and not validate_only else {}
        steps.extend(AlteredStep(what=f"move of {tp}", error=refused.get(tp)) for tp in sorted(moves))
    except AdminError as error:
        steps.append(AlteredStep(what=step, error=error))
    return Alteration(steps=tuple(steps))


async def _require_live(call: Call, moves: Mapping[TopicPartition, Replicas]) -> None:
    """Raise `InvalidArgument` for moves that the controller would refuse only after the earlier steps are done."""
    live = set(call.cluster.brokers)
    controller = call.cluster.controller
    wanted = {broker for replicas in moves.values() for broker in replicas}
    if controller is not None and controller in wanted & live and not await keeps_logs(call, controller):
        live.discard(controller)
    for tp, replicas in moves.items():
        if unknown := sorted(set(replicas) - live):
            raise InvalidArgument(f"{tp} would have a replica on {unknown}, which are not live brokers: start them")


def _require_possible(
    before: TopicDescription,
    partitions: int | None,
    assignment: Assignment | None,
    added_configs: Mapping[str, str],
    deleted_configs: Sequence[str],
) -> None:
    if partitions is None and assignment is None and not added_configs and not deleted_configs:
        raise InvalidArgument("there is nothing to alter: give partitions, an assignment, or configurations")
    if both := sorted(set(added_configs) & set(deleted_configs)):
        raise InvalidArgument(f"{', '.join(both)} would be both set and deleted: choose one")
    if partitions is not None and partitions < len(before.partitions):
        raise InvalidArgument(
            f"topic {before.topic} has {len(before.partitions)} partitions, and partitions cannot be removed: give a "
            "larger number"
        )
    if assignment is not None:
        require_sound(assignment)
        if len(assignment) != partitions:
            raise InvalidArgument(
                f"there would be {partitions} partitions, and {len(assignment)} are assigned: assign all"
            )


def _find_moves(before: TopicDescription, assignment: Assignment | None) -> dict[TopicPartition, Replicas]:
    present = {each.partition.partition: each.replicas for each in before.partitions}
    return {
        TopicPartition(before.topic, number): replicas
        for number, replicas in (assignment or {}).items()
        if number in present and present[number] != replicas
    }


async def _alter_configs(
    call: Call, topic: str, added: Mapping[str, str], deleted: Sequence[str], *, validate_only: bool
) -> None:
    client = call.target_controller_or_broker(changes_nothing=validate_only)
    result = await alter_configs(client, topic, {**added, **dict.fromkeys(deleted)}, validate_only=validate_only)
    result.require(f"the configurations of topic {topic}")


async def _add_partitions(
    call: Call, before: TopicDescription, count: int, assignment: Assignment | None, *, validate_only: bool
) -> None:
    new = None
    if assignment is not None:
        new = [assignment[PartitionId(number)] for number in range(len(before.partitions), count)]
    _require_in_range("partitions", count, _MOST_PARTITIONS)
    controller = call.target_controller(changes_nothing=validate_only)
    result = await add_partitions(controller, before.topic, count, new, call.for_server, validate_only=validate_only)
    result.require(f"topic {before.topic}")


def _describe(topic: MetadataResponseTopic, configs: Mapping[str, str | None]) -> TopicDescription:
    found = read_topic(topic)
    return TopicDescription(topic=found.name, configs=configs, partitions=tuple(found.list_partitions()))


def _require_in_range(what: str, count: int | None, largest: int) -> None:
    if count is not None and not 1 <= count <= largest:
        raise InvalidArgument(f"{what} cannot be {count}: give a number from 1 to {largest}")
