"""The schedule of the soak: made by the seed alone, complete, and without impossible events."""

import itertools
from collections.abc import Iterator

import pytest

from devcluster.soak.operations import (
    AddPartitions,
    CreateTopic,
    DeleteTopic,
    KillServer,
    Operation,
    PauseServer,
    Reassign,
    RecreateTopic,
    ReplaceReassignment,
    ResumeServer,
    StartServer,
    StopServer,
    kind_of,
    partitions_of,
)
from devcluster.soak.schedule import (
    BROKERS,
    CONTROLLERS,
    LOADED_PARTITIONS,
    LOADED_TOPICS,
    MOST_BROKERS_AWAY,
    Step,
    schedule,
)

SEEDS = range(20)
TEN_MINUTES_S = 600

ALL_KINDS = {
    "create topic",
    "delete topic",
    "recreate topic",
    "add partitions",
    "change config",
    "reassign",
    "replace reassignment",
    "cancel reassignment",
    "elect preferred",
    "stop broker",
    "kill broker",
    "pause broker",
    "resume broker",
    "start broker",
    "stop controller",
    "kill controller",
    "pause controller",
    "resume controller",
    "start controller",
    "crash ZooKeeper",
}


ASKED_FOR = {
    "create topic",
    "delete topic",
    "recreate topic",
    "add partitions",
    "reassign",
    "replace reassignment",
    "cancel reassignment",
    "elect preferred",
}


def steps(seed: int, until_s: float = TEN_MINUTES_S) -> list[Step]:
    return list(itertools.takewhile(lambda step: step.at_s < until_s, schedule(seed)))


def operations(seed: int, until_s: float = TEN_MINUTES_S) -> Iterator[Operation]:
    return (step.operation for step in steps(seed, until_s))


def test_the_same_seed_makes_the_same_schedule() -> None:
    assert steps(7) == steps(7)
    assert [str(step) for step in steps(7)] == [str(step) for step in steps(7)]


def test_another_seed_makes_another_schedule() -> None:
    assert steps(7) != steps(8)


def test_a_longer_schedule_begins_like_a_shorter_one() -> None:
    shorter = steps(7, until_s=180)
    assert steps(7)[: len(shorter)] == shorter


@pytest.mark.parametrize("seed", SEEDS)
def test_steps_are_in_the_order_of_time(seed: int) -> None:
    times = [step.at_s for step in steps(seed)]
    assert times == sorted(times)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_kind_of_operation_occurs_within_minutes(seed: int) -> None:
    assert {kind_of(step.operation).removesuffix(" by request") for step in steps(seed, until_s=240)} == ALL_KINDS


@pytest.mark.parametrize("seed", SEEDS)
def test_people_ask_for_everything_both_through_znodes_and_by_request(seed: int) -> None:
    kinds = {kind_of(operation) for operation in operations(seed, until_s=1800)}
    assert {f"{kind} by request" for kind in ASKED_FOR} | ASKED_FOR <= kinds


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_asked_of_what_cannot_exist(seed: int) -> None:
    present = dict.fromkeys(LOADED_TOPICS, LOADED_PARTITIONS)
    for operation in operations(seed):
        assert all(number < present.get(topic, 0) for topic, number in partitions_of(operation)), str(operation)
        match operation:
            case CreateTopic():
                assert operation.topic not in present
                present[operation.topic] = len(operation.replicas)
            case RecreateTopic():
                present[operation.topic] = len(operation.replicas)
            case AddPartitions():
                present[operation.topic] += len(operation.replicas)
            case DeleteTopic():
                del present[operation.topic]
            case _:
                pass


@pytest.mark.parametrize("seed", SEEDS)
def test_servers_are_only_taken_away_while_they_are_there_and_always_come_back(seed: int) -> None:
    away: dict[str, type[StartServer | ResumeServer]] = {}
    for operation in operations(seed):
        match operation:
            case StopServer() | KillServer():
                assert operation.server not in away
                away[operation.server] = StartServer
            case PauseServer():
                assert operation.server not in away
                away[operation.server] = ResumeServer
            case StartServer() | ResumeServer():
                assert away.pop(operation.server) is type(operation)
            case _:
                pass
        brokers = [server for server in away if server.startswith("broker-")]
        assert len(brokers) <= MOST_BROKERS_AWAY
        assert len(away) - len(brokers) < len(CONTROLLERS)


@pytest.mark.parametrize("seed", SEEDS)
def test_topics_that_are_produced_to_keep_three_replicas_and_are_never_deleted(seed: int) -> None:
    for operation in operations(seed):
        match operation:
            case DeleteTopic() | RecreateTopic() | CreateTopic():
                assert operation.topic not in LOADED_TOPICS
            case AddPartitions() if operation.topic in LOADED_TOPICS:
                assert all(len(replicas) == 3 for replicas in operation.replicas)
            case Reassign() | ReplaceReassignment():
                loaded = [target for (topic, _), target in operation.targets.items() if topic in LOADED_TOPICS]
                assert all(len(target) == 3 for target in loaded)
            case _:
                pass


@pytest.mark.parametrize("seed", SEEDS)
def test_replicas_are_distinct_brokers(seed: int) -> None:
    for operation in operations(seed):
        match operation:
            case CreateTopic() | RecreateTopic() | AddPartitions():
                lists = list(operation.replicas)
            case Reassign() | ReplaceReassignment():
                lists = list(operation.targets.values())
            case _:
                continue
        assert lists
        assert all(replicas and len(set(replicas)) == len(replicas) for replicas in lists)
        assert {broker for replicas in lists for broker in replicas} <= set(BROKERS)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_partitions_of_a_topic_are_created_with_equally_many_replicas(seed: int) -> None:
    factors = dict.fromkeys(LOADED_TOPICS, 3)
    for operation in operations(seed):
        match operation:
            case CreateTopic() | RecreateTopic():
                factors[operation.topic] = len(operation.replicas[0])
            case AddPartitions():
                pass
            case _:
                continue
        assert {len(replicas) for replicas in operation.replicas} == {factors[operation.topic]}
