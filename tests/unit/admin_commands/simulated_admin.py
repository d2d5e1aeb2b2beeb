"""A cluster for commands to administer: its partitions move when a test says so, and its calls fail as a test wants."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from controller_core.client.admin_client import AdminClient
from controller_core.client.elections import Elected
from controller_core.client.features import FeatureMetadata, FeatureUpdate, SupportedRange
from controller_core.client.log_dirs.placing import Placement
from controller_core.client.properties import ClientProperties
from controller_core.client.reassigning.assignments import format_reassignment, parse_reassignment
from controller_core.client.reassigning.reassignments import Ongoing, Progress, ReassignmentResult
from controller_core.client.reassigning.throttles import ThrottleSet
from controller_core.client.topics.administration import Alteration, TopicList
from controller_core.client.transport.request_client import Address
from controller_core.model.ids import BrokerId, PartitionId, PartitionReplica, TopicName, TopicPartition
from kontroller.command_line import main

ORDERS = TopicPartition(TopicName("orders"), PartitionId(0))
OTHER = TopicPartition(TopicName("other"), PartitionId(0))


def replicas(*ids: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, ids))


def make_move(origin: Sequence[int], target: Sequence[int]) -> Ongoing:
    return Ongoing(
        replicas=replicas(*target, *(each for each in origin if each not in target)),
        adding=replicas(*(each for each in target if each not in origin)),
        removing=replicas(*(each for each in origin if each not in target)),
    )


@dataclass(slots=True)
class SimulatedCluster:
    """The state that commands find, and the requests that they sent."""

    present: dict[TopicPartition, tuple[BrokerId, ...]] = field(default_factory=lambda: {ORDERS: replicas(1, 2)})
    moves: dict[TopicPartition, Ongoing] = field(default_factory=dict)
    placements: dict[PartitionReplica, Placement] = field(default_factory=dict)
    """The places of replicas that are to have a certain log directory."""
    ends_by_itself: bool = True
    """True if a move completes while somebody waits for it."""
    is_throttled: bool = False
    owns_throttles: bool = False
    """True if the controller owns throttles."""
    absent: tuple[BrokerId, ...] = ()
    """Brokers that are down while a move is throttled."""
    throttled_later: list[int] = field(default_factory=list)
    fails: dict[str, list[BaseException]] = field(default_factory=dict)
    """The errors that the next calls of these names raise."""
    features: dict[str, int] = field(default_factory=dict)
    supported: tuple[str, ...] = ()
    """Features that are supported beside `f`."""
    changes_meanwhile: dict[str, int] = field(default_factory=dict)
    """Levels that are there from the second description on."""
    marked: tuple[TopicName, ...] | None = None
    elected: Elected = field(default_factory=dict)
    alteration: Alteration = field(default_factory=lambda: Alteration(steps=()))
    asked: list[str] = field(default_factory=list)
    timeouts_ms: list[int | None] = field(default_factory=list)

    def ask(self, call: str, timeout_ms: int | None) -> None:
        self.asked.append(call)
        self.timeouts_ms.append(timeout_ms)
        if self.fails.get(call):
            raise self.fails[call].pop(0)


class SimulatedAdmin(AdminClient):
    """The client of the simulated cluster."""

    def __init__(self, cluster: SimulatedCluster, properties: Mapping[str, object] | ClientProperties) -> None:
        super().__init__(properties)
        self.simulated = cluster

    async def list_reassignments(self, *, timeout_ms: int | None = None) -> dict[TopicPartition, Ongoing]:
        self.simulated.ask("list", timeout_ms)
        return dict(self.simulated.moves)

    async def current_assignment(self, reassignment: str, *, timeout_ms: int | None = None) -> str:
        self.simulated.ask("current", timeout_ms)
        return format_reassignment({tp: self.simulated.present[tp] for tp in parse_reassignment(reassignment)})

    async def throttle_reassignment(
        self, reassignment: str, bytes_per_second: int, *, timeout_ms: int | None = None
    ) -> ThrottleSet:
        self.simulated.is_throttled = True
        self.simulated.ask("throttle", timeout_ms)
        return ThrottleSet(is_owned=self.simulated.owns_throttles, absent=self.simulated.absent)

    async def throttle_brokers(
        self, brokers: Iterable[int], bytes_per_second: int, *, timeout_ms: int | None = None
    ) -> tuple[BrokerId, ...]:
        self.simulated.throttled_later += brokers
        return ()

    async def end_owned_throttle(self, reassignment: str, *, timeout_ms: int | None = None) -> None:
        self.simulated.ask("end", timeout_ms)
        if self.simulated.owns_throttles:
            self.simulated.is_throttled = False

    async def unthrottle_reassignment(self, reassignment: str, *, timeout_ms: int | None = None) -> None:
        self.simulated.ask("unthrottle", timeout_ms)
        self.simulated.is_throttled = False

    async def start_reassignment(self, reassignment: str, *, timeout_ms: int | None = None) -> None:
        self.simulated.ask("start", timeout_ms)
        for tp, target in parse_reassignment(reassignment).items():
            self.simulated.moves[tp] = make_move(self.simulated.present[tp], target)

    async def wait_for_reassignment(self, reassignment: str, *, timeout_ms: int | None = None) -> ReassignmentResult:
        self.simulated.ask("wait", timeout_ms)
        for tp in parse_reassignment(reassignment):
            moved = self.simulated.moves.pop(tp)
            if self.simulated.ends_by_itself:
                self.simulated.present[tp] = moved.target
        return ReassignmentResult(partitions=self._progress(reassignment))

    async def placements_of_reassignment(
        self, reassignment: str, *, timeout_ms: int | None = None
    ) -> dict[PartitionReplica, Placement]:
        return dict(self.simulated.placements)

    async def verify_reassign_partitions(
        self, reassignment: str, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, Progress]:
        self.simulated.ask("verify", timeout_ms)
        return self._progress(reassignment)

    async def cancel_reassignment(
        self, reassignment: str, *, timeout_ms: int | None = None
    ) -> tuple[TopicPartition, ...]:
        self.simulated.ask("cancel", timeout_ms)
        return tuple(tp for tp in parse_reassignment(reassignment) if self.simulated.moves.pop(tp, None) is not None)

    async def create_topic(self, topic: str, *_: Any, timeout_ms: int | None = None, **__: Any) -> None:
        self.simulated.ask("create", timeout_ms)

    async def alter_topic(self, topic: str, *_: Any, timeout_ms: int | None = None, **__: Any) -> Alteration:
        self.simulated.ask("alter", timeout_ms)
        return self.simulated.alteration

    async def delete_topic(self, topic: str, *, timeout_ms: int | None = None) -> None:
        self.simulated.ask("delete", timeout_ms)

    async def list_topics(self, *, timeout_ms: int | None = None) -> TopicList:
        self.simulated.ask("topics", timeout_ms)
        return TopicList(
            alive=tuple(tp.topic for tp in self.simulated.present), marked_for_deletion=self.simulated.marked
        )

    async def preferred_replica_leader_election(
        self, partitions: str | None = None, *, timeout_ms: int | None = None
    ) -> Elected:
        self.simulated.ask("elect", timeout_ms)
        return self.simulated.elected

    async def describe_features(self, *, of_controller: bool = False, timeout_ms: int | None = None) -> FeatureMetadata:
        self.simulated.ask("features", timeout_ms)
        found = FeatureMetadata(
            finalized=dict(self.simulated.features),
            epoch=3,
            supported={name: SupportedRange(min_version=1, max_version=5) for name in ("f", *self.simulated.supported)},
            answered_by=Address("h", 9092),
            updates_by_version=2,
        )
        self.simulated.features.update(self.simulated.changes_meanwhile)
        return found

    async def update_features(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> FeatureMetadata:
        self.simulated.ask("validate" if validate_only else "update", timeout_ms)
        if validate_only:
            return await self.describe_features()
        self.simulated.features.update({each.feature: each.level for each in updates})
        return await self.describe_features()

    async def delete_features(self, names: Sequence[str], *, timeout_ms: int | None = None) -> FeatureMetadata:
        self.simulated.ask("disable", timeout_ms)
        return await self.describe_features()

    def _progress(self, reassignment: str) -> dict[TopicPartition, Progress]:
        found = {}
        for tp, target in parse_reassignment(reassignment).items():
            move = self.simulated.moves.get(tp)
            if move is not None:
                found[tp] = Progress.IN_PROGRESS if move.target == target else Progress.FAILED
            else:
                found[tp] = Progress.COMPLETED if self.simulated.present.get(tp) == target else Progress.FAILED
        return found


@contextmanager
def replace_cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedCluster]:
    """Replace the cluster of commands that run inside the block by this one."""
    cluster = SimulatedCluster()

    class Admin(SimulatedAdmin):
        def __init__(self, properties: Mapping[str, object] | ClientProperties) -> None:
            super().__init__(cluster, properties)

    with monkeypatch.context() as patch:
        patch.setattr("kontroller.AdminClient", Admin)
        patch.setenv("KONTROLLER_BOOTSTRAP_SERVER", "127.0.0.1:1")
        yield cluster


def kontroller(*arguments: str, stdin: str | None = None) -> Result:
    """Run a command in this process. Without `stdin` nobody can confirm anything."""
    return CliRunner().invoke(main, arguments, input=stdin)


def plan(targets: Mapping[TopicPartition, Sequence[int]]) -> tuple[str, str, str]:
    """Return the option of a plan, and the text for standard input."""
    return "--reassignment-json-file", "-", format_reassignment(targets)


def document(ended: Result) -> Any:
    """The one document on standard output."""
    return json.loads(ended.stdout)


def one_line(ended: Result) -> str:
    """The one line on standard error, of an error that has one."""
    (line,) = ended.stderr.splitlines()
    assert line.startswith("kontroller: ")
    return line
