"""The operator at work: the store of objects, the queue of those to look at, and the workers that do.

An object is looked at when it changes, when the cluster that it refers to changes in a way that can concern it, when
an object that it depends on changes, after a time that its plan asked for, and after errors with growing pauses.

kopf's watches bring what changes, but handlers know nothing of each other and kopf keeps what it needs to remember in
the objects. So kopf only feeds this store, and nothing has to be kept anywhere: all that a plan must remember is in the
statuses. Before anything is decided all objects were listed once, because which of two objects is older can only be said
over both; the listing is repeated now and then, should a watch have missed something.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from time import perf_counter
from typing import Final

import structlog

from controller_core.supervision import supervised
from controller_core.wire.client.request_client import RequestClient
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import ZkError
from controller_operator.kafka.cluster_view import ClusterView
from controller_operator.kafka.feature_requests import OpenClient
from controller_operator.kubernetes.object_api import ApiError, ApiRefused, ObjectApi, ObjectGone
from controller_operator.kubernetes.object_store import KIND_CLASSES, Key, ObjectStore, Raw, StoredObject
from controller_operator.metrics import OperatorMetrics
from controller_operator.observation.observer import Observation
from controller_operator.observation.pool import Connect
from controller_operator.plans.outcome import Notice
from controller_operator.reconciling.access import ClusterAccess, is_about, topics_changed
from controller_operator.reconciling.event_recorder import EventRecorder
from controller_operator.reconciling.reconciler import Reconciler, Result
from controller_operator.reconciling.work_queue import WorkQueue
from controller_operator.resources import FeatureSet, KafkaCluster, KafkaTopic, PartitionReassignment
from controller_operator.resources.reassignment import ReassignmentPhase
from controller_operator.settings import OperatorSettings

_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 60.0
_LISTING_RETRY_S: Final = 2.0
_log = structlog.get_logger(__name__)


class OperatorRuntime:
    """One operator. `start` it, give it what the watches see, `stop` it."""

    def __init__(
        self, settings: OperatorSettings, api: ObjectApi, connect: Connect, open_client: OpenClient = RequestClient
    ) -> None:
        self._settings = settings
        self._api = api
        self._store = ObjectStore()
        self._queue = WorkQueue()
        self.metrics = OperatorMetrics()
        self.metrics.observe(self._store.conditions)
        self._recorder = EventRecorder(api)
        self._access = ClusterAccess(self._store, connect, unreachable_grace_s=settings.unreachable_grace_s)
        self._access.on_change = self._on_observation
        self._reconciler = Reconciler(
            self._store,
            api,
            self._access,
            self._recorder,
            self.metrics,
            self._queue.add,
            open_client,
            missing_cluster_grace_s=settings.missing_cluster_grace_s,
        )
        self._last_views: dict[str, ClusterView] = {}
        self._failures: dict[Key, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Lists all objects and begins to work. Raises `ApiRefused` where the rights for that are missing."""
        while True:
            try:
                await self._list_all()
                break
            except ApiRefused:
                raise
            except ObjectGone as error:
                _log.warning("no such kind: are the CustomResourceDefinitions installed?", error=str(error))
            except ApiError as error:
                _log.warning("the API server does not answer yet", error=str(error))
            await asyncio.sleep(_LISTING_RETRY_S)
        self._spawn(self._resync, "resync")
        for number in range(self._settings.workers):
            self._spawn(self._work, f"worker {number}")

    async def stop(self) -> None:
        """Stops all work. What was under way is taken up again at the next start."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._queue.close()
        await self._access.close()

    async def on_event(self, type_: str | None, raw: Raw) -> None:
        """Takes in what a watch has seen; the types are those of the API server, None for a first listing."""
        if type_ != "DELETED":
            stored = self._store.put(raw)
            if stored is not None:
                self._queue.add(self._concerned(stored))
            return
        gone = StoredObject(raw)
        self._store.remove(gone.key, gone.uid)
        await self._forget(gone)

    async def _forget(self, gone: StoredObject) -> None:
        self._failures.pop(gone.key, None)
        self._queue.add(self._concerned(gone))
        move = gone.resource
        if isinstance(move, PartitionReassignment) and move.status.phase is ReassignmentPhase.RUNNING:
            message = "deleted while it ran: the partitions go on to their targets"
            await self._recorder.post(
                gone.raw, Notice(reason="ReassignmentContinues", message=message, is_warning=True)
            )
        if isinstance(move, KafkaCluster):
            await self._access.keep_needed()

    def _concerned(self, stored: StoredObject) -> set[Key]:
        """The objects that have to be looked at when this one changes."""
        keys = {stored.key, *stored.owner_keys, *self._store.dependents(stored.key)}
        if isinstance(stored.resource, KafkaTopic):
            claims = self._store.claims(stored.resource.topic_name)
            keys |= {Key(claim.kind, claim.metadata.namespace, claim.metadata.name) for claim in claims}
        if isinstance(stored.resource, FeatureSet):
            keys.update(self._store.keys(stored.key.kind))  # a feature that one gives up is another one's
        return keys

    def _on_observation(self, connect: str, observation: Observation) -> None:
        view = observation.view
        self.metrics.unreachable_clusters.set(self._access.unreachable)
        clusters = self._store.clusters_at(connect)
        topics = topics_changed(self._last_views.get(connect), view) if view and not observation.trouble else None
        if view is not None and not observation.trouble:
            self._last_views[connect] = view
        else:
            self._last_views.pop(connect, None)
        if observation.lag_s is not None:
            self.metrics.observation_lag_s.observe(observation.lag_s)
        for cluster in clusters:
            dependents = (key for key in self._store.dependents(cluster) if is_about(key, self._store, topics))
            self._queue.add((cluster, *dependents))

    async def _work(self) -> None:
        while True:
            key = await self._queue.take()
            self.metrics.queue_depth.set(len(self._queue))
            began = perf_counter()
            try:
                result = await self._look_at(key)
            finally:
                self._queue.release(key)
            self.metrics.duration_s.labels(key.kind).observe(perf_counter() - began)
            self.metrics.reconciliations.labels(key.kind, result.word).inc()
            if result.look_again_in_s is not None:
                self._queue.add_later(key, result.look_again_in_s)

    async def _look_at(self, key: Key) -> Result:
        try:
            result = await self._reconciler.reconcile(key)
        except (ApiError, ZkError, MalformedZnode) as error:
            pause_s = self._pause_s(key)
            _log.warning("look failed", object=str(key), error=f"{type(error).__name__}: {error}", again_in_s=pause_s)
            return Result(word="failed", look_again_in_s=pause_s)
        except Exception:  # noqa: BLE001 - logged with its traceback, counted, and tried again
            # One object that a plan stumbles over must not stop the work on all others.
            pause_s = self._pause_s(key)
            _log.exception("look failed unexpectedly", object=str(key), again_in_s=pause_s)
            return Result(word="error", look_again_in_s=pause_s)
        self._failures.pop(key, None)
        return result

    def _pause_s(self, key: Key) -> float:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return min(_FIRST_PAUSE_S * float(2 ** min(failures - 1, 16)), _LONGEST_PAUSE_S)

    async def _list_all(self) -> None:
        gone: list[Key] = []
        for kind in KIND_CLASSES:
            changed, missing = self._store.replace(kind, await self._listed(kind))
            self._queue.add(changed)
            gone.extend(missing)
            self.metrics.objects.labels(kind).set(len(self._store.keys(kind)))
        for key in gone:
            self._queue.add(self._store.dependents(key))
        await self._access.keep_needed()

    async def _listed(self, kind: str) -> list[Raw]:
        namespaces: Iterable[str | None] = self._settings.namespaces or (None,)
        return [raw for namespace in namespaces for raw in await self._api.list_all(kind, namespace)]

    async def _resync(self) -> None:
        while True:
            await asyncio.sleep(self._settings.resync_interval_s)
            try:
                await self._list_all()
            except ApiError as error:
                _log.warning("resync failed", error=str(error))
            self._queue.add(self._store.keys())

    def _spawn(self, work: Callable[[], Coroutine[None, None, None]], name: str) -> None:
        self._tasks.add(supervised(work, name=f"operator {name}"))
