"""A controller that changes while every call is repeated: each call finds the next one, or may have been done."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from controller_core.client.admin_client import AdminClient
from controller_core.client.errors import AdminError, OutcomeUnknown, Refused
from controller_core.client.features import FeatureUpdate
from controller_core.client.reassigning.assignments import format_partitions, format_reassignment
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from tests.real.conformance.clusters import ConformanceCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]

TIMEOUT_MS = 60_000
PAUSE_S = 0.3
"""The pause between two calls of one kind."""
REFUSED_ANYWAY = {
    "update_features": ErrorCode.invalid_request,  # no broker of 3.9 supports any
    "delete_features": ErrorCode.invalid_request,
    "delete_topic": ErrorCode.unknown_topic_or_partition,  # if it is unknown whether it was created
    "delete_scram_user": ErrorCode.resource_not_found,
}


@dataclass(slots=True)
class Calls:
    """Every call, each made repeatedly."""

    admin: AdminClient
    beside: AdminClient
    """A second client, because a client makes one update of features at a time."""
    topic: str
    ended: dict[str, list[AdminError | None]] = field(default_factory=lambda: defaultdict(list))
    """The errors of each call, in order."""

    def kinds(self) -> Mapping[str, Callable[[int], Awaitable[Any]]]:
        """Return the calls by kind, which get the number of the turn. Calls that change something have their own topic."""
        admin, topic = self.admin, self.topic
        calm, moved = (TopicPartition(TopicName(f"{topic}-{use}"), PartitionId(0)) for use in ("calm", "moved"))
        there, back = (format_reassignment({moved: tuple(map(BrokerId, to))}) for to in ((1, 2), (2, 1)))
        resting, chosen = format_reassignment({calm: (BrokerId(1), BrokerId(2))}), format_partitions([calm])
        return {
            "describe_cluster": lambda _: admin.describe_cluster(),
            "create_topic": lambda turn: admin.create_topic(f"{topic}-{turn}", replica_assignment="1:2"),
            "delete_topic": lambda turn: admin.delete_topic(f"{topic}-{turn - 2}"),
            "alter_topic": lambda turn: admin.alter_topic(topic, added_configs={"retention.ms": str(turn)}),
            "list_topics": lambda _: admin.list_topics(),
            "describe_topic": lambda _: admin.describe_topic(topic),
            "reassign_partitions": lambda turn: admin.reassign_partitions(there if turn % 2 else back),
            "cancel_reassignment": lambda _: admin.cancel_reassignment(resting),
            "verify_reassign_partitions": lambda _: admin.verify_reassign_partitions(resting),
            "progress_of_reassignment": lambda _: admin.progress_of_reassignment(resting),
            "list_reassignments": lambda _: admin.list_reassignments(),
            "throttle_reassignment": lambda _: admin.throttle_reassignment(resting, 1 << 30),
            "preferred_replica_leader_election": lambda _: admin.preferred_replica_leader_election(chosen),
            "elect_unclean": lambda _: admin.elect_unclean(chosen),
            "verify_election": lambda _: admin.verify_preferred_replica_leader_election(chosen),
            "set_scram_user": lambda turn: admin.set_scram_user(f"{topic}-{turn}", "secret", iterations=4096),
            "delete_scram_user": lambda turn: admin.delete_scram_user(f"{topic}-{turn - 2}", "SCRAM-SHA-512"),
            "list_scram_users": lambda _: admin.list_scram_users(),
            "describe_features": lambda _: admin.describe_features(of_controller=True),
            "update_features": lambda _: admin.update_features([FeatureUpdate(feature="nobody-has-it", level=1)]),
            "delete_features": lambda _: self.beside.delete_features(["nobody-has-it"]),
        }

    async def go_on(self) -> None:
        """Repeat all calls until cancelled."""
        async with asyncio.TaskGroup() as group:
            for kind, make in self.kinds().items():
                group.create_task(self._repeat(kind, make))

    async def are_made(self, times: int) -> None:
        """Wait until each call has ended this many more times."""
        before = {kind: len(self.ended[kind]) for kind in self.kinds()}
        while any(len(self.ended[kind]) < count + times for kind, count in before.items()):  # noqa: ASYNC110 - others'
            await asyncio.sleep(0.1)

    async def _repeat(self, kind: str, make: Callable[[int], Awaitable[Any]]) -> None:
        turn = 0
        while True:
            turn += 1
            try:
                end = await make(turn)
            except AdminError as error:
                self.ended[kind].append(error)
            else:
                parts = end.values() if isinstance(end, dict) else [getattr(end, "error", None)]
                self.ended[kind].append(next((each for each in parts if isinstance(each, AdminError)), None))
            await asyncio.sleep(PAUSE_S)


async def test_every_call_ends_well_or_says_that_it_may_have_been_done(cluster: ConformanceCluster, name: str) -> None:
    for topic in (name, f"{name}-calm", f"{name}-moved"):
        cluster.serve_topic(topic, [[1, 2]])
        cluster.wait_until_everybody_knows(topic)
    properties = {**cluster.properties(cluster.kafka.bootstrap_servers), "default.api.timeout.ms": TIMEOUT_MS}
    calls = Calls(admin=AdminClient(properties), beside=AdminClient(properties), topic=name)
    making = asyncio.create_task(calls.go_on())
    try:
        await calls.are_made(1)
        for _ in range(2):
            epoch = cluster.controller_epoch()
            await asyncio.to_thread(move_controller, cluster)
            await asyncio.to_thread(bring_back, cluster)
            await calls.are_made(2)
            assert cluster.controller_epoch() > epoch
    finally:
        making.cancel()
        await asyncio.gather(making, return_exceptions=True)
    await calls.admin.unthrottle_reassignment(
        format_reassignment({TopicPartition(TopicName(f"{name}-calm"), PartitionId(0)): (BrokerId(1), BrokerId(2))})
    )
    unexpected = {
        kind: [error for error in errors if error is not None and not is_expected(kind, error)]
        for kind, errors in calls.ended.items()
    }
    assert not {kind: errors for kind, errors in unexpected.items() if errors}
    for kind, errors in calls.ended.items():
        assert errors[-1] is None or kind in REFUSED_ANYWAY, (kind, errors[-1])


def is_expected(kind: str, error: AdminError) -> bool:
    """Return True for refusals that are expected, and for unknown outcomes of changes, because other calls are retried."""
    if isinstance(error, Refused):
        return error.code is REFUSED_ANYWAY.get(kind)
    return isinstance(error, OutcomeUnknown) and kind.startswith(
        ("create", "delete", "alter", "reassign", "cancel", "throttle", "preferred", "elect", "set", "update")
    )


def move_controller(cluster: ConformanceCluster) -> None:
    """Take the role from the controller, without notifying anybody."""
    if cluster.own_controller is not None:
        cluster.own_controller.process.kill()
    else:
        cluster.znodes.client.delete("/controller")


def bring_back(cluster: ConformanceCluster) -> None:
    if cluster.own_controller is not None:
        cluster.own_controller.restart_whole()
    cluster.wait(cluster.is_led, "the controller")
