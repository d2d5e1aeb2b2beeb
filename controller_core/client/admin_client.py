"""`AdminClient`: administers a Kafka cluster from the outside, over Kafka's own protocol (KIP-4, KIP-584).

It works with any cluster of Kafka 2.8 or later, with any controller. `timeout_ms` limits a whole call; the default is
the property `default.api.timeout.ms`, one minute if it is not set. This module has the public API, and its neighbours
implement the calls. `BlockingAdminClient` has the same calls for code without an event loop."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar

from controller_core.client import describing, elections, features, users
from controller_core.client.cluster import Cluster
from controller_core.client.elections import Elected
from controller_core.client.errors import InvalidArgument, UpdateInProgress
from controller_core.client.features import EpochSeen, FeatureMetadata, FeatureUpdate
from controller_core.client.loads.cluster_loads import ClusterLoads
from controller_core.client.loads.describing import DEFAULT_BETWEEN_LOOKS_S, describe_loads
from controller_core.client.log_dirs.placing import Placement
from controller_core.client.properties import ClientProperties
from controller_core.client.reassigning import copying, reassignments, throttles
from controller_core.client.reassigning.assignments import (
    format_reassignment,
    parse_partitions,
    parse_reassignment,
    parse_replica_assignment,
    read_reassignment,
)
from controller_core.client.reassigning.copying import MoveProgress
from controller_core.client.reassigning.directories import find_placements
from controller_core.client.reassigning.reassignments import Ongoing, Progress, ReassignmentResult
from controller_core.client.reassigning.throttles import ThrottleSet
from controller_core.client.topics import administration as topics
from controller_core.client.topics.administration import Alteration, Assignment, TopicDescription, TopicList
from controller_core.client.topics.deletions import read_marked_for_deletion
from controller_core.model.ids import BrokerId, PartitionReplica, TopicPartition
from controller_core.model.snapshot import Snapshot

_NO_CONFIGS: Final[Mapping[str, str]] = {}
P = ParamSpec("P")
R = TypeVar("R")


class AdminClient:
    """A client of one cluster. Every call may raise a subclass of `AdminError`. There is nothing to close."""

    def __init__(self, properties: Mapping[str, object] | ClientProperties) -> None:
        """`properties`: those of Kafka's clients, at least `bootstrap.servers`. Raises `InvalidArgument`."""
        if not isinstance(properties, ClientProperties):
            properties = ClientProperties.parse(properties)
        self._properties = properties
        self._cluster = Cluster.create(properties)
        self._seen = EpochSeen()
        self._is_updating = False

    async def describe_cluster(self, *, timeout_ms: int | None = None) -> Snapshot:
        """Return the brokers, the controller, and the topics with their partitions. Configurations are not read."""
        return await describing.describe(self._cluster.call(timeout_ms))

    async def describe_loads(
        self, *, between_looks_s: float = DEFAULT_BETWEEN_LOOKS_S, timeout_ms: int | None = None
    ) -> ClusterLoads:
        """Return the brokers with their disks, and the partitions with their sizes and the bytes that producers write.

        Rates need two looks at the ends of the logs, `between_looks_s` apart. With 0 there is one look, and rates are
        unknown. `timeout_ms` limits each look."""
        return await describe_loads(self._cluster, between_looks_s, timeout_ms)

    # Topics

    async def create_topic(
        self,
        topic: str,
        partitions: int | None = None,
        replication_factor: int | None = None,
        *,
        replica_assignment: str | Assignment | None = None,
        configs: Mapping[str, str] = _NO_CONFIGS,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> None:
        """Create a topic with numbers, or with an assignment: `1:2,2:3` puts partition 0 on 1 and 2, partition 1 on 2
        and 3."""
        await topics.create(
            self._cluster.call(timeout_ms),
            topic,
            partitions=partitions,
            replication_factor=replication_factor,
            assignment=_parse_assignment(replica_assignment),
            configs=configs,
            validate_only=validate_only,
        )

    async def alter_topic(
        self,
        topic: str,
        partitions: int | None = None,
        replica_assignment: str | Assignment | None = None,
        added_configs: Mapping[str, str] = _NO_CONFIGS,
        deleted_configs: Sequence[str] = (),
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Alteration:
        """Alter configurations, then add partitions, then move the partitions whose replicas differ from the
        assignment.

        Changes that are known to fail are refused before anything is done. The result lists the steps that were, or
        would be, done."""
        return await topics.alter(
            self._cluster.call(timeout_ms),
            topic,
            partitions=partitions,
            assignment=_parse_assignment(replica_assignment),
            added_configs=added_configs,
            deleted_configs=deleted_configs,
            validate_only=validate_only,
        )

    async def delete_topic(self, topic: str, *, timeout_ms: int | None = None) -> None:
        """Mark a topic for deletion."""
        await topics.delete(self._cluster.call(timeout_ms), topic)

    async def list_topics(self, *, timeout_ms: int | None = None) -> TopicList:
        """Return the live topics, and the topics marked for deletion, which are known only with `zookeeper.connect`."""
        call = self._cluster.call(timeout_ms)
        marked = await read_marked_for_deletion(call, self._properties)
        going = frozenset(marked or ())
        alive = tuple(topic for topic in await topics.list_alive(call) if topic not in going)
        return TopicList(alive=alive, marked_for_deletion=marked)

    async def describe_topic(self, topic: str, *, timeout_ms: int | None = None) -> TopicDescription:
        """Return a topic's partitions, and the configurations that are set on it."""
        (found,) = await self.describe_topics([topic], timeout_ms=timeout_ms)
        return found

    async def describe_topics(
        self, names: Sequence[str], *, timeout_ms: int | None = None
    ) -> tuple[TopicDescription, ...]:
        """Describe several topics, with two requests for all of them."""
        return await topics.describe(self._cluster.call(timeout_ms), *names)

    # Reassignments

    async def start_reassignment(self, reassignment: str, *, timeout_ms: int | None = None) -> None:
        """Start a move, given in the JSON of kafka-reassign-partitions. Return when it has begun.

        Brokers are first asked to put replicas into the log directories that it names. If a broker restarts before it
        creates such a replica, it forgets that, and `wait_for_reassignment` asks again."""
        await reassignments.start(self._cluster.call(timeout_ms), read_reassignment(reassignment))

    async def current_assignment(self, reassignment: str, *, timeout_ms: int | None = None) -> str:
        """Return the JSON that moves partitions back to their present replicas, or if they move, to those before the
        move. If the given JSON names log directories for a partition, the result names its present ones."""
        plan = read_reassignment(reassignment)
        present = await reassignments.read_present(self._cluster.call(timeout_ms), plan)
        return format_reassignment(present.targets, present.directories)

    async def throttle_reassignment(
        self, reassignment: str, bytes_per_second: int, *, timeout_ms: int | None = None
    ) -> ThrottleSet:
        """Limit what each broker copies for a move that has not begun. Kontroller removes the limit with the move;
        otherwise remove it afterwards."""
        targets = parse_reassignment(reassignment)
        return await throttles.throttle(self._cluster.call(timeout_ms), targets, bytes_per_second)

    async def throttle_brokers(
        self, brokers: Iterable[int], bytes_per_second: int, *, timeout_ms: int | None = None
    ) -> tuple[BrokerId, ...]:
        """Limit brokers that were down when a move was throttled, and return those that still are."""
        return await throttles.throttle_brokers(
            self._cluster.call(timeout_ms), map(BrokerId, brokers), bytes_per_second
        )

    async def unthrottle_reassignment(self, reassignment: str, *, timeout_ms: int | None = None) -> None:
        """Remove the throttles of a move."""
        await throttles.unthrottle(self._cluster.call(timeout_ms), parse_reassignment(reassignment))

    async def end_owned_throttle(self, reassignment: str, *, timeout_ms: int | None = None) -> None:
        """Remove the throttle of a move only if the controller owns it. Other moves may be running."""
        await throttles.end_owned(self._cluster.call(timeout_ms), parse_reassignment(reassignment))

    async def progress_of_reassignment(self, reassignment: str, *, timeout_ms: int | None = None) -> MoveProgress:
        """Return how many partitions are done, and how many bytes are left."""
        return await copying.progress(self._cluster.call(timeout_ms), read_reassignment(reassignment))

    async def placements_of_reassignment(
        self, reassignment: str, *, timeout_ms: int | None = None
    ) -> dict[PartitionReplica, Placement]:
        """Return the place of each replica for which the JSON names a log directory, and the bytes left to copy."""
        directories = read_reassignment(reassignment).directories
        return await find_placements(self._cluster.call(timeout_ms), directories)

    async def reassign_partitions(self, reassignment: str, *, timeout_ms: int | None = None) -> ReassignmentResult:
        """Start a move, and return when it has ended or cannot start. If the caller stops waiting, the move goes on.

        Without `timeout_ms` there is no time limit."""
        return await reassignments.move(self._cluster, read_reassignment(reassignment), timeout_ms)

    async def wait_for_reassignment(self, reassignment: str, *, timeout_ms: int | None = None) -> ReassignmentResult:
        """Wait until no partition of a move is moving, and no replica is copied to a log directory that it names."""
        return await reassignments.wait_until_moved(self._cluster, read_reassignment(reassignment), timeout_ms)

    async def verify_reassign_partitions(
        self, reassignment: str, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, Progress]:
        """Return for each partition 1 (at its target), 0 (moving there) or -1 (neither), as the cluster reports it
        now."""
        return await reassignments.verify(self._cluster.call(timeout_ms), read_reassignment(reassignment))

    async def cancel_reassignment(
        self, reassignment: str, *, timeout_ms: int | None = None
    ) -> tuple[TopicPartition, ...]:
        """Move the partitions of a move back to their original replicas, and end the copying to log directories that
        it names. Return the partitions that were moving."""
        return await reassignments.cancel(self._cluster.call(timeout_ms), read_reassignment(reassignment))

    async def list_reassignments(self, *, timeout_ms: int | None = None) -> dict[TopicPartition, Ongoing]:
        """Return all partitions that are being reassigned."""
        return await reassignments.list_ongoing(self._cluster.call(timeout_ms))

    # Elections

    async def preferred_replica_leader_election(
        self, partitions: str | None = None, *, timeout_ms: int | None = None
    ) -> Elected:
        """Elect the first replica of each partition: of those in the JSON of kafka-leader-election, or of all."""
        return await elections.elect_preferred(self._cluster.call(timeout_ms), _parse_optional_partitions(partitions))

    async def elect_unclean(self, partitions: str | None = None, *, timeout_ms: int | None = None) -> Elected:
        """Elect a live replica as leader of partitions without one. Records that it lacks are lost."""
        return await elections.elect_unclean(self._cluster.call(timeout_ms), _parse_optional_partitions(partitions))

    async def verify_preferred_replica_leader_election(
        self, partitions: str | None = None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, Progress]:
        """Return for each partition 1 (its first replica leads), 0 (it could lead) or -1 (not in sync, or no such
        partition)."""
        return await elections.verify_preferred(self._cluster.call(timeout_ms), _parse_optional_partitions(partitions))

    # Users

    async def set_scram_user(
        self,
        user: str,
        password: str,
        *,
        mechanism: str = "SCRAM-SHA-512",
        iterations: int = 8192,
        timeout_ms: int | None = None,
    ) -> None:
        """Set a user's SCRAM password. Only the keys derived from it are sent (KIP-554)."""
        call = self._cluster.call(timeout_ms)
        await users.set_user(call, user, password, mechanism=mechanism, iterations=iterations)

    async def delete_scram_user(self, user: str, mechanism: str, *, timeout_ms: int | None = None) -> None:
        """Delete a user's password for a mechanism."""
        await users.delete_user(self._cluster.call(timeout_ms), user, mechanism)

    async def list_scram_users(self, *, timeout_ms: int | None = None) -> dict[str, dict[str, int]]:
        """Return the users with passwords: for each user the mechanisms with their iterations."""
        return await users.list_users(self._cluster.call(timeout_ms))

    # Features

    async def describe_features(self, *, of_controller: bool = False, timeout_ms: int | None = None) -> FeatureMetadata:
        """Return the finalized and supported features, from any broker or from the controller. The result is never
        older than an earlier one."""
        return await features.describe(self._cluster.call(timeout_ms), self._seen, of_controller=of_controller)

    async def update_features(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> FeatureMetadata:
        """Finalize levels: all or none, if the controller supports that (see `features`).

        Raises `UpdateInProgress` while another update of this client runs."""
        call = self._cluster.call(timeout_ms)
        return await self._run_alone(features.update(call, self._seen, updates, validate_only=validate_only))

    @staticmethod
    def check_feature_updates(updates: Sequence[FeatureUpdate]) -> None:
        """Raise `InvalidArgument` if the updates make no sense in any cluster. Nobody is asked."""
        features.require_sound(updates)

    async def delete_features(self, names: Sequence[str], *, timeout_ms: int | None = None) -> FeatureMetadata:
        """Remove finalized features."""
        return await self._run_alone(features.delete(self._cluster.call(timeout_ms), self._seen, names))

    async def _run_alone(self, work: Coroutine[Any, Any, FeatureMetadata]) -> FeatureMetadata:
        if self._is_updating:
            work.close()
            raise UpdateInProgress("another update of features runs: await it, then try again")
        self._is_updating = True
        try:
            return await work
        finally:
            self._is_updating = False


def _make_future_call(
    method: Callable[Concatenate[AdminClient, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate["BlockingAdminClient", P], "Future[R]"]:
    def call(client: "BlockingAdminClient", /, *args: P.args, **kwargs: P.kwargs) -> "Future[R]":
        return client.submit(method(client.asynchronous, *args, **kwargs))

    call.__doc__ = method.__doc__
    return call


def _make_blocking_call(
    method: Callable[Concatenate[AdminClient, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate["BlockingAdminClient", P], R]:
    begin = _make_future_call(method)

    def call(client: "BlockingAdminClient", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return begin(client, *args, **kwargs).result()

    call.__doc__ = method.__doc__
    return call


class BlockingAdminClient:
    """The calls of `AdminClient`, each of which returns when it is done. Close it, because it has a thread."""

    def __init__(self, properties: Mapping[str, object] | ClientProperties) -> None:
        """See `AdminClient`."""
        self.asynchronous = AdminClient(properties)
        self._loop = asyncio.new_event_loop()
        self._closing = threading.Lock()
        self._is_closed = False
        self._thread = threading.Thread(target=self._loop.run_forever, name="kontroller-admin", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def submit(self, work: Coroutine[Any, Any, R]) -> "Future[R]":
        """Run work in the client's thread. Raises `InvalidArgument` if the client is closed."""
        with self._closing:
            if self._is_closed:
                work.close()
                raise InvalidArgument("the client is closed: create another one")
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """End the thread. Pending calls are cancelled, but their requests may still be carried out by the cluster."""
        with self._closing:
            if self._is_closed:
                return
            self._is_closed = True
        asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    create_topic = _make_blocking_call(AdminClient.create_topic)
    alter_topic = _make_blocking_call(AdminClient.alter_topic)
    delete_topic = _make_blocking_call(AdminClient.delete_topic)
    list_topics = _make_blocking_call(AdminClient.list_topics)
    describe_topic = _make_blocking_call(AdminClient.describe_topic)
    describe_topics = _make_blocking_call(AdminClient.describe_topics)
    describe_cluster = _make_blocking_call(AdminClient.describe_cluster)
    describe_loads = _make_blocking_call(AdminClient.describe_loads)
    throttle_reassignment = _make_blocking_call(AdminClient.throttle_reassignment)
    throttle_brokers = _make_blocking_call(AdminClient.throttle_brokers)
    end_owned_throttle = _make_blocking_call(AdminClient.end_owned_throttle)
    unthrottle_reassignment = _make_blocking_call(AdminClient.unthrottle_reassignment)
    start_reassignment = _make_blocking_call(AdminClient.start_reassignment)
    current_assignment = _make_blocking_call(AdminClient.current_assignment)
    reassign_partitions = _make_future_call(AdminClient.reassign_partitions)
    wait_for_reassignment = _make_blocking_call(AdminClient.wait_for_reassignment)
    placements_of_reassignment = _make_blocking_call(AdminClient.placements_of_reassignment)
    progress_of_reassignment = _make_blocking_call(AdminClient.progress_of_reassignment)
    verify_reassign_partitions = _make_blocking_call(AdminClient.verify_reassign_partitions)
    cancel_reassignment = _make_blocking_call(AdminClient.cancel_reassignment)
    list_reassignments = _make_blocking_call(AdminClient.list_reassignments)
    preferred_replica_leader_election = _make_future_call(AdminClient.preferred_replica_leader_election)
    elect_unclean = _make_blocking_call(AdminClient.elect_unclean)
    verify_preferred_replica_leader_election = _make_blocking_call(AdminClient.verify_preferred_replica_leader_election)
    set_scram_user = _make_blocking_call(AdminClient.set_scram_user)
    delete_scram_user = _make_blocking_call(AdminClient.delete_scram_user)
    list_scram_users = _make_blocking_call(AdminClient.list_scram_users)
    describe_features = _make_blocking_call(AdminClient.describe_features)
    update_features = _make_blocking_call(AdminClient.update_features)
    delete_features = _make_blocking_call(AdminClient.delete_features)


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _parse_assignment(given: str | Assignment | None) -> Assignment | None:
    return parse_replica_assignment(given) if isinstance(given, str) else given


def _parse_optional_partitions(given: str | None) -> tuple[TopicPartition, ...] | None:
    return parse_partitions(given) if given is not None else None
