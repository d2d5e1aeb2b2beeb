"""The operator at work: the store of objects, the queue of objects to reconcile, and the workers.

A standby only watches and keeps its store current, so that it can begin at once. An object is reconciled when it
changes, when its cluster changes in a relevant way, when an object that it depends on changes, after a delay that its
plan asked for, and after errors with growing pauses. Relists (at the start, periodically, and after an outage) have a
lower priority. A watcher (`kubernetes.watcher`, kopf in production) passes events to the store
(`kubernetes.object_intake`). All memory of plans is in the statuses. All objects are listed once before the first
decision, because the age of objects is compared over all of them. Workers are supervised and restarted. `trouble` is an
obstacle to the work, and `is_stuck` one that only a new process would cure.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import aclosing
from functools import partial
from time import perf_counter
from typing import Final

import structlog

from controller_core.audit.trail import open_trail
from controller_core.client.log_dirs.log_sizes import OpenBroker
from controller_core.client.transport.request_client import RequestClient
from controller_core.model.snapshot import Snapshot
from controller_core.model.topics.topic_changes import NO_RULES, TopicRules
from controller_core.supervision import start_supervised, start_task
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import ZkError
from controller_operator.clusters.opening import OpenPoller, make_poller
from controller_operator.clusters.pool import Connect
from controller_operator.clusters.throttle_record import ThrottleRecord
from controller_operator.kafka.broker_listeners import ListenerOf, OpenClient, any_plaintext
from controller_operator.kubernetes.definitions import Definitions
from controller_operator.kubernetes.object_api import ApiError, ApiRefused, ObjectApi, ObjectGone
from controller_operator.kubernetes.object_intake import ObjectIntake, Stream
from controller_operator.kubernetes.object_store import (
    KIND_CLASSES,
    Key,
    ObjectStore,
    StoredObject,
    cluster_key,
    key_of_resource,
)
from controller_operator.kubernetes.watcher import Watcher
from controller_operator.leading.leadership import NotLeading
from controller_operator.metrics import OperatorMetrics
from controller_operator.observation.observation import Observation
from controller_operator.reconciling.access import ClusterAccess, requests_changed, topics_changed, way_changed
from controller_operator.reconciling.applying import Result
from controller_operator.reconciling.event_recorder import DEFAULT_HOME, EventRecorder, Home
from controller_operator.reconciling.letting_go import make_leftover_notice
from controller_operator.reconciling.measuring.move_meter import OVER_TCP
from controller_operator.reconciling.measuring.plan_maker import PlanMaker
from controller_operator.reconciling.reconciler import MakePlanMaker, Reconciler
from controller_operator.reconciling.wall_clock import Now, utc_now
from controller_operator.reconciling.work_queue import WorkQueue
from controller_operator.resources import FeatureSet, KafkaCluster, KafkaTopic
from controller_operator.resources.cluster_address import ClusterAddress
from controller_operator.resources.common import FINALIZER
from controller_operator.settings import OperatorSettings

_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 60.0
_LONGEST_START_PAUSE_S: Final = 30.0
_NO_SUCH_KIND: Final = "no such kind: are the CustomResourceDefinitions installed?"
_STUCK_S: Final = 600.0
_DEFINITIONS_S: Final = 30.0
_DEPENDENTS_S: Final = 0.5
_ABOUT_ALL_S: Final = 10.0
"""Seconds that a move or an election about all topics may wait after one of them has changed. Over 120,000 partitions
its plan takes half a second, and nothing else runs during it."""
_log = structlog.get_logger(__name__)


class OperatorRuntime:
    """One operator. `start` it, and `stop` it."""

    def __init__(
        self,
        settings: OperatorSettings,
        api: ObjectApi,
        watcher: Watcher,
        connect: Connect,
        open_client: OpenClient = RequestClient,
        now: Now = utc_now,
        *,
        open_broker: OpenBroker = OVER_TCP,
        make_plan_maker: MakePlanMaker = PlanMaker,
        listener_of: ListenerOf = any_plaintext,
        open_poller: OpenPoller = make_poller,
        home: Home = DEFAULT_HOME,
        rules: TopicRules = NO_RULES,
    ) -> None:
        """`home`: the place of the records about leftovers of deleted objects, and about throttles."""
        self._settings = settings
        self._api = api
        self._watcher = watcher
        self._definitions = Definitions(api)
        self._store = ObjectStore()
        self._queue = WorkQueue()
        self.metrics = OperatorMetrics()
        self.trail = open_trail("operator", settings.open_audit_sinks(), self.metrics.registry)
        self._recorder = EventRecorder(api, home, lambda kind: self.metrics.left_behind.labels(kind).inc())
        self._access = ClusterAccess(
            self._store,
            connect,
            open_client,
            unreachable_grace_s=settings.unreachable_grace_seconds,
            objects_unreachable_grace_s=settings.objects_unreachable_grace_seconds,
            listener_of=listener_of,
            open_poller=open_poller,
            open_record=partial(ThrottleRecord, api, home.namespace, home.throttles),
        )
        self._access.on_change = self._on_observation
        self._reconciler = Reconciler(
            self._store,
            api,
            self._access,
            self._recorder,
            self.metrics,
            self._queue.add,
            missing_cluster_grace_s=settings.missing_cluster_grace_seconds,
            namespaces=settings.namespace,
            open_broker=open_broker,
            make_plan_maker=make_plan_maker,
            now=now,
            trouble_of_kind=self._definitions.trouble_of,
            rules=rules,
            trail=self.trail,
        )
        self._last_views: dict[ClusterAddress, Snapshot] = {}
        self._standings: dict[Key, tuple[str, int, str | None, str | None] | None] = {}
        """The properties of a KafkaCluster that its objects depend on: uid, generation, cluster id, and accepted
        cluster id."""
        self._failures: dict[Key, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._once: list[asyncio.Task[None]] = []
        self._at_work: dict[Key, float] = {}
        self._is_listed = False
        self._starting_trouble = "objects are being listed"
        self._streams: list[Stream] = []
        self._is_at_work = False
        self._at_beginning: list[Callable[[], Coroutine[None, None, None]]] = []
        self._intake = ObjectIntake(self._store, self._on_objects)
        for kind in KIND_CLASSES:
            self.metrics.objects.labels(kind).set_function(partial(self._store.count, kind))
            self.metrics.left_behind.labels(kind)

    async def start(self) -> None:
        """Watch, then work. Raises `ApiRefused` if the rights to list objects are missing."""
        await self.watch()
        self.begin_work()

    async def watch(self) -> None:
        """Watch all objects, and wait until all are known. Raises `ApiRefused` if rights are missing."""
        await self._definitions.look()
        self._streams = await self._wait_for_streams()
        self._intake.expect(self._streams)
        self._spawn(self._intake.run, "intake")
        await self._watcher.start(self._intake, self._streams)
        await self._intake.wait_for_all()
        self._spawn(self._watch_definitions, "definitions")
        self._spawn(self._resync, "resync")
        self._spawn(self.trail.sum_up_each_minute, "audit")
        self._is_listed = True

    async def _wait_for_streams(self) -> list[Stream]:
        """Wait until the API server serves the kinds. Return the streams to watch."""
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return await self._look_for_streams()
            except ApiRefused:
                raise
            except ApiError as error:
                if str(error) != self._starting_trouble:
                    _log.warning("objects out of sight", trouble=str(error))
                self._starting_trouble = str(error)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_START_PAUSE_S)

    async def _look_for_streams(self) -> list[Stream]:
        """Request a page of each stream, so that a missing right is found before anything is watched."""
        served = await self._api.read_served_kinds()
        if (cluster := KafkaCluster.definition.kind) not in served:
            raise ObjectGone(f"{cluster}: {_NO_SUCH_KIND}")
        namespaces = self._settings.namespace or (None,)
        streams = [Stream(kind, namespace) for kind in KIND_CLASSES if kind in served for namespace in namespaces]
        for stream in streams:
            async with aclosing(self._api.pages(*stream)) as pages:
                await anext(pages)
        return streams

    def call_at_beginning(self, do: Callable[[], Coroutine[None, None, None]]) -> None:
        """Register a function that is called once, when the work begins."""
        self._at_beginning.append(do)

    def begin_work(self) -> None:
        """Reconcile all objects, and from now on those that a change concerns."""
        self._is_at_work = True
        for each in self._at_beginning:
            self._once.append(start_task(each(), name="what is done as the work begins"))
        self.metrics.leader.set(1)
        self.metrics.observe(self._store.count_conditions, self._store.list_unready, self._store.list_disks)
        for key in self._store.keys(KafkaCluster.definition.kind):
            if (stored := self._store.get(key)) is not None:
                self._find_concerned_by_cluster(stored)
        self._queue.add_unhurried(self._store.keys())
        for number in range(self._settings.workers):
            self._spawn(self._work, f"worker {number}")

    @property
    def store(self) -> ObjectStore:
        """The known objects."""
        return self._store

    def find_working_access(self) -> ClusterAccess | None:
        """Return the clusters that this operator works on; None while it stands by."""
        return self._access if self._is_at_work else None

    @property
    def trouble(self) -> str | None:
        """The reason why the operator does not do its work now; None if it does."""
        if not self._streams:
            return self._starting_trouble
        watched = {stream.kind for stream in self._streams}
        missing = [f"{kind}: {_NO_SUCH_KIND}" for kind in KIND_CLASSES if kind not in watched]
        troubles = [self._watcher.trouble, self._definitions.trouble, *missing]
        return "; ".join(filter(None, troubles)) or (None if self._is_listed else self._starting_trouble)

    def is_stuck(self) -> str | None:
        """Return the work that has ended but never should, or that has hung at one object; None if all is well."""
        if ended := [task.get_name() for task in self._tasks if task.done()]:
            return f"ended: {', '.join(ended)}"
        now = perf_counter()
        stuck = [f"{key} for {now - began:.0f} s" for key, began in self._at_work.items() if now - began > _STUCK_S]
        return f"still looking at {', '.join(stuck)}" if stuck else None

    async def stop(self) -> None:
        """Stop all work. Unfinished work continues at the next start."""
        tasks = [*self._tasks, *self._once]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._watcher.stop()
        self._queue.close()
        await self._reconciler.close()
        await self._recorder.close()
        await self._access.close()
        await self.trail.close()

    async def _on_objects(self, changed: Sequence[StoredObject], gone: Sequence[StoredObject]) -> None:
        """Queue the objects that a change of the store concerns."""
        if not self._is_at_work:
            return
        for stored in changed:
            self._queue.add(self._find_concerned(stored))
            self._queue.add_unhurried(self._find_concerned_by_cluster(stored))
        for stored in gone:
            await self._forget(stored)
        for cluster in {key for each in (*changed, *gone) if (key := cluster_key(each.resource)) is not None}:
            self._look_at_finalizer_of(cluster)
        if any(isinstance(stored.resource, KafkaCluster) for stored in (*changed, *gone)):
            await self._access.keep_needed()
            needed = self._store.addresses()
            self._last_views = {at: view for at, view in self._last_views.items() if at in needed}

    def _look_at_finalizer_of(self, cluster: Key) -> None:
        """Queue a KafkaCluster if its finalizer may be due, because its dependents have changed.

        Thousands of objects that come or go cause one reconciliation."""
        stored = self._store.get(cluster)
        metadata = stored.raw["metadata"] if stored is not None else {}
        if stored is not None and ("deletionTimestamp" in metadata or FINALIZER not in metadata.get("finalizers", ())):
            self._queue.add_later(cluster, _DEPENDENTS_S)

    async def _forget(self, gone: StoredObject) -> None:
        self._failures.pop(gone.key, None)
        self._queue.add(self._find_concerned(gone))
        self._queue.add_unhurried(self._dependents_of(gone))
        self._standings.pop(gone.key, None)
        heir = self._access.find_claims(gone.resource).heir if isinstance(gone.resource, KafkaTopic) else None
        if (notice := make_leftover_notice(gone.resource, heir)) is not None:
            await self._recorder.post(gone.raw, notice)

    def _find_concerned(self, stored: StoredObject) -> set[Key]:
        """Return the objects to reconcile when this one changes."""
        keys = {stored.key, *stored.owner_keys}
        if stored.claim is not None:
            keys |= self._store.claimants(stored.claim.topic_name)
        if isinstance(stored.resource, FeatureSet):
            keys.update(self._store.keys(stored.key.kind))  # another set may take over a feature that this one drops
        return keys

    def _find_concerned_by_cluster(self, stored: StoredObject) -> set[Key]:
        """Return a KafkaCluster's objects if more than its status has changed, because that changes all the time."""
        if stored.key.kind != KafkaCluster.definition.kind:
            return set()
        cluster = stored.resource if isinstance(stored.resource, KafkaCluster) else None
        standing = (
            (stored.uid, cluster.metadata.generation, cluster.status.cluster_id, cluster.metadata.accepted_cluster_id)
            if cluster
            else None
        )
        if standing is not None and self._standings.get(stored.key) == standing:
            return set()
        self._standings[stored.key] = standing
        return self._dependents_of(stored)

    def _dependents_of(self, stored: StoredObject) -> set[Key]:
        cluster = stored.resource
        siblings = self._dependents_of_siblings(cluster) if isinstance(cluster, KafkaCluster) else set()
        return siblings | self._store.dependents(stored.key)

    def _dependents_of_siblings(self, cluster: KafkaCluster) -> set[Key]:
        """Return the KafkaClusters for the same Kafka cluster, and their objects.

        Their rights and claims may change with this KafkaCluster, or with the Kafka cluster that it leads to."""
        siblings = map(key_of_resource, self._access.find_siblings(cluster))
        return {key for sibling in siblings for key in (sibling, *self._store.dependents(sibling))}

    def _on_observation(self, address: ClusterAddress, observation: Observation) -> None:
        view = observation.view
        self.metrics.unreachable_clusters.set(self._access.unreachable)
        clusters = self._store.clusters_at(address)
        before = self._last_views.get(address)
        topics = topics_changed(before, view) if view and not observation.trouble else None
        if view is not None and not observation.trouble:
            self._last_views[address] = view
        else:
            self._last_views.pop(address, None)
        if observation.lag_s is not None:
            self.metrics.observation_lag_s.observe(observation.lag_s)
        for cluster in clusters:
            self._queue.add((cluster,))
            if topics is None or before is None or view is None:
                self._queue.add_unhurried(self._store.dependents(cluster))
            else:
                self._add_concerned(cluster, topics, before, view)
        if view is not None and (before is None or before.cluster_id != view.cluster_id):
            self._wake_siblings(clusters)

    def _add_concerned(self, cluster: Key, topics: set[str], before: Snapshot, view: Snapshot) -> None:
        """Queue the objects that a limited change concerns.

        Every change concerns the objects about all topics, and planning them takes long. They follow now and then, and
        at once if the way for a request may be free."""
        self._queue.add(self._store.dependents_about(cluster, topics))
        about_all = self._store.askers_about_all(cluster)
        if requests_changed(before, view):
            self._queue.add(self._store.askers(cluster) - about_all)
        if way_changed(before, view):
            self._queue.add(about_all)
        elif topics or requests_changed(before, view):
            for key in about_all:
                self._queue.add_later(key, _ABOUT_ALL_S)

    def _wake_siblings(self, clusters: Iterable[Key]) -> None:
        for key in clusters:
            stored = self._store.get(key)
            if stored is not None and isinstance(stored.resource, KafkaCluster):
                self._queue.add_unhurried(self._dependents_of_siblings(stored.resource))

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(0)  # thousands of reconciliations without a wait would otherwise block the loop
            key = await self._queue.take()
            self.metrics.queue_depth.set(len(self._queue))
            began = self._at_work[key] = perf_counter()
            try:
                result = await self._reconciler.reconcile(key)
                self._failures.pop(key, None)
            except Exception as error:  # noqa: BLE001 - logged, counted, and tried again
                result = self._retry_later(key, error)
            finally:
                del self._at_work[key]
                self._queue.release(key)
            self.metrics.duration_s.labels(key.kind).observe(perf_counter() - began)
            self.metrics.reconciliations.labels(key.kind, result.word).inc()
            if result.look_again_in_s is not None:
                self._queue.add_later(key, result.look_again_in_s)

    def _retry_later(self, key: Key, error: Exception) -> Result:
        """Log the failure of an object, and return the pause until its next attempt.

        A bug that one object triggers must not stop the work on all others."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        pause_s = min(_FIRST_PAUSE_S * float(2 ** min(failures - 1, 16)), _LONGEST_PAUSE_S)
        if isinstance(error, ApiError | ZkError | MalformedZnode | NotLeading):
            _log.warning("look failed", object=str(key), error=f"{type(error).__name__}: {error}", again_in_s=pause_s)
            return Result(word="failed", look_again_in_s=pause_s)
        _log.error("look failed unexpectedly", object=str(key), again_in_s=pause_s, exc_info=error)
        return Result(word="error", look_again_in_s=pause_s)

    async def _watch_definitions(self) -> None:
        """Read objects again after a definition was updated, because the API server now shows their dropped fields."""
        while True:
            await asyncio.sleep(_DEFINITIONS_S)
            changed = await self._definitions.look()
            for stream in self._streams:
                if stream.kind in changed and self._definitions.trouble_of(stream.kind) is None:
                    await self._intake.read_again(self._api, stream)
            if changed:
                self._queue.add_unhurried(self._store.keys())

    async def _resync(self) -> None:
        """Compare the store with listings now and then, regardless of the watches, and reconcile all objects."""
        while True:
            await asyncio.sleep(self._settings.resync_interval_seconds)
            for stream in self._streams:
                try:
                    await self._intake.list_all(self._api, stream)
                except ApiError as error:
                    _log.warning("not compared with a listing", objects=str(stream), error=str(error))
            if self._is_at_work:
                self._queue.add_unhurried(self._store.keys())

    def _spawn(self, work: Callable[[], Coroutine[None, None, None]], name: str) -> None:
        self._tasks.add(start_supervised(work, name=f"operator {name}"))
