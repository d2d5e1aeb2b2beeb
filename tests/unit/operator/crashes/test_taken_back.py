"""Edits of a KafkaTopic that are taken back end as the last spec says, and blame nobody else.

Edits come at any moment of the moves that earlier ones have begun, operators die after any of their writes, and each
drift policy comes to the same end. Later changes by others are drift as ever.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from controller_core.zk import codecs, paths
from controller_operator.kubernetes.object_store import Key, Raw
from simulation.fast_loop import run_fast
from tests.unit.examples import examples
from tests.unit.operator.crashes.operated import NIGHTLY, Operated, run_beside
from tests.unit.operator.crashes.quorum_world import QuorumWorld, quorum_installation
from tests.unit.operator.crashes.world import World, installation

AnyWorld = TypeVar("AnyWorld", bound=Operated)
Edit = tuple[float, str, Any]
"""The seconds before an edit, the edited field, and its value."""
POLICIES: Final = ("Enforce", "Report", "Ignore")
BLAME: Final = ("elsewhere", "DriftCorrected", "another tool", '"phase": "Failed"')
FIRST: Final[Raw] = {"partitions": 3, "replicationFactor": 2, "reassignment": {"maxConcurrentPartitions": 1}}
_PAUSES_S: Final = st.sampled_from((0.0, 0.1, 0.4, 0.9, 2.0, 30.0))
EDITS: Final = st.lists(
    st.one_of(
        st.tuples(_PAUSES_S, st.just("replicationFactor"), st.sampled_from((1, 2, 3))),
        st.tuples(_PAUSES_S, st.just("replicaAssignment"), st.sampled_from((0, 1, 3))),
        st.tuples(_PAUSES_S, st.just("config"), st.sampled_from((None, "1000", "2000"))),
        st.tuples(_PAUSES_S, st.just("partitions"), st.just(1)),
        st.tuples(_PAUSES_S, st.just("driftPolicy"), st.sampled_from(POLICIES)),
        st.tuples(_PAUSES_S, st.just("taken back"), st.none()),
    ),
    min_size=2,
    max_size=6,
)
TAKEN_BACK: Final[list[Edit]] = [(0.0, "replicationFactor", 3), (0.9, "taken back", None)]
DEATHS: Final = st.lists(st.integers(min_value=1, max_value=12), max_size=4)


def edit(spec: Raw, before: Raw, what: str, value: Any) -> Raw:
    """Return the spec after an edit. `before`: the spec that taking the last edit back leads to."""
    after = {**spec}
    match what:
        case "replicationFactor":
            after.pop("replicaAssignment", None)
            after["replicationFactor"] = value
        case "replicaAssignment":
            after.pop("replicationFactor", None)
            after["replicaAssignment"] = _place(spec["partitions"], value)
        case "config":
            after["config"] = {} if value is None else {"retention.ms": value}
        case "partitions":
            after["partitions"] += value
            if "replicaAssignment" in after:
                after["replicaAssignment"] = [*after["replicaAssignment"], [1, 2]]
        case "driftPolicy":
            after["driftPolicy"] = value
        case _ if before["partitions"] == spec["partitions"]:
            after = before
    return after


def _place(partitions: int, shift: int) -> list[list[int]]:
    return [[1 + (number + shift) % 6, 1 + (number + shift + 1) % 6] for number in range(partitions)]


async def follow(world: Operated, policy: str, edits: Sequence[Edit]) -> tuple[Key, Raw]:
    """Make the edits; return the object and its last spec."""
    before = spec = {**FIRST, "driftPolicy": policy}
    key = await world.apply("KafkaTopic", "orders", spec)
    await world.wait_until(lambda: world.is_ready(key))
    for pause_s, what, value in edits:
        await asyncio.sleep(pause_s)
        before, spec = spec, edit(spec, before, what, value)
        await world.apply("KafkaTopic", "orders", spec)
    await world.wait_until_quiet()
    return key, spec


def replicas_of(world: Operated) -> list[list[int]]:
    if isinstance(world, World):
        found = world.cluster.topic("orders").partitions
        assert not any(each.is_being_reassigned for each in found.values())
        return [[*found[number].replicas] for number in sorted(found)]
    assert isinstance(world, QuorumWorld)
    partitions = world.cluster.topics["orders"].partitions
    assert not any(each.is_moving for each in partitions)
    return [[*each.replicas] for each in partitions]


def config_of(world: Operated) -> dict[str, str]:
    if isinstance(world, World):
        data = world.cluster.data(paths.topic_config("orders"))  # type: ignore[arg-type]
        return {**codecs.decode_config(data, "")} if data else {}
    assert isinstance(world, QuorumWorld)
    return world.cluster.topics["orders"].config


def set_elsewhere(world: Operated, config: dict[str, str]) -> None:
    if isinstance(world, World):
        world.cluster.put(paths.topic_config("orders"), codecs.encode_config(config))  # type: ignore[arg-type]
    else:
        assert isinstance(world, QuorumWorld)
        world.cluster.topics["orders"].config.update(config)


def assert_as_said(world: Operated, key: Key, spec: Raw) -> None:
    replicas = replicas_of(world)
    assert len(replicas) == spec["partitions"]
    if "replicaAssignment" in spec:
        assert replicas == spec["replicaAssignment"]
    assert {len(each) for each in replicas} == {spec.get("replicationFactor", 2)}
    assert config_of(world) == spec.get("config", {})
    assert (world.find_reason(key), world.find_reason(key, "Drifted")) == ("Reconciled", "InSync")
    assert world.status(key).get("drift", []) == []


def blame(world: Operated) -> list[str]:
    return [each for each in world.writes if any(word in each for word in BLAME)]


async def pass_through(
    install: Callable[[], AbstractAsyncContextManager[AnyWorld]],
    policy: str,
    edits: Sequence[Edit],
    deaths: Sequence[int],
) -> None:
    async with install() as world:
        async with run_beside(world.operate(deaths)):
            key, spec = await follow(world, policy, edits)
            assert_as_said(world, key, spec)
            assert blame(world) == []
        async with run_beside(world.operate()):
            written = len(world.writes)
            await world.wait_until_quiet()
            assert world.writes[written:] == []
            await _change_elsewhere(world, key, spec)


async def _change_elsewhere(world: Operated, key: Key, spec: Raw) -> None:
    """The drift policy of the last spec decides about a change that somebody else makes."""
    spec = {**spec, "config": {"retention.ms": "3000"}}
    await world.apply("KafkaTopic", "orders", spec)
    await world.wait_until(lambda: world.is_ready(key))
    await world.wait_until_quiet()
    set_elsewhere(world, {"retention.ms": "7"})
    await world.wait_until_quiet()
    is_enforced = spec["driftPolicy"] == "Enforce"
    assert config_of(world) == {"retention.ms": "3000" if is_enforced else "7"}
    assert blame(world)


@pytest.mark.parametrize("install", [installation, quorum_installation], ids=["ZooKeeper", "Kafka 4"])
@pytest.mark.parametrize("count", [8, pytest.param(60, marks=NIGHTLY)])
def test_any_edits_end_as_the_last_spec_says_and_nobody_else_is_blamed(
    install: Callable[[], AbstractAsyncContextManager[Operated]], count: int
) -> None:
    @examples(count)
    @example(policy="Report", edits=TAKEN_BACK, deaths=[])
    @example(policy="Enforce", edits=TAKEN_BACK, deaths=[2, 3])
    @given(policy=st.sampled_from(POLICIES), edits=EDITS, deaths=DEATHS)
    def whatever_is_edited(policy: str, edits: Sequence[Edit], deaths: Sequence[int]) -> None:
        run_fast(pass_through(install, policy, edits, deaths))

    whatever_is_edited()
