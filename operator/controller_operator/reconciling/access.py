"""Which cluster an object gets, or why it gets none: the reference, the permission, and whether ZooKeeper answers."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from controller_operator.kafka.cluster_view import ClusterView
from controller_operator.kubernetes.object_store import AnyResource, Key, ObjectStore, cluster_key
from controller_operator.observation.observer import ClusterObserver, Observation
from controller_operator.observation.pool import Connect, ObserverPool
from controller_operator.plans.cluster import is_other_cluster
from controller_operator.plans.feature_set.planner import Claims
from controller_operator.plans.outcome import Verdict
from controller_operator.resources import FeatureSet, KafkaCluster, KafkaTopic
from controller_operator.resources.conditions import Reason

_POLL_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """A cluster that can be read and written now."""

    cluster: KafkaCluster
    observer: ClusterObserver
    view: ClusterView


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """No cluster now. `verdict` None: it is only a moment's trouble, and nothing is to be said about it yet."""

    verdict: Verdict | None
    retry_s: float = _POLL_S
    is_missing: bool = False
    """The KafkaCluster itself is not there."""


class ClusterAccess:
    """The clusters of the objects in a store."""

    def __init__(self, store: ObjectStore, connect: Connect, *, unreachable_grace_s: float) -> None:
        self._store = store
        self._grace_s = unreachable_grace_s
        self._trouble_since: dict[str, float] = {}
        self.on_change: Callable[[str, Observation], None] = _ignore
        """Called with whatever is new about the cluster at a connect string."""
        self._pool = ObserverPool(connect, self._observed)

    @property
    def unreachable(self) -> int:
        """How many clusters are out of reach."""
        return len(self._trouble_since)

    async def keep_needed(self) -> None:
        """Stops to observe what no KafkaCluster names any more."""
        needed = self._store.connects()
        await self._pool.keep_only(needed)
        for gone in set(self._trouble_since) - needed:
            del self._trouble_since[gone]

    async def close(self) -> None:
        await self._pool.close()

    def of(self, resource: AnyResource) -> Granted | Withheld:
        """The cluster of an object; a KafkaCluster's is its own."""
        if isinstance(resource, KafkaCluster):
            return self._reach(resource)
        key = cluster_key(resource)
        stored = self._store.get(key) if key else None
        if stored is None or not isinstance(stored.resource, KafkaCluster):
            message = f"there is no {key}: create it, or correct clusterRef (which needs a new object)"
            return Withheld(verdict=Verdict.working(Reason.CLUSTER_NOT_FOUND, message), is_missing=True)
        refusal = _refusal(resource, stored.resource)
        if refusal is not None:
            return Withheld(verdict=refusal)
        granted = self._reach(stored.resource)
        if isinstance(granted, Granted) and is_other_cluster(stored.resource, granted.view):
            message = f"KafkaCluster {stored.resource.metadata.name} leads to another Kafka cluster than before"
            return Withheld(verdict=Verdict.stalled(Reason.CLUSTER_CHANGED, message))
        return granted

    def claimant(self, resource: KafkaTopic) -> KafkaTopic:
        """Whose topic it is: of all objects that claim it, and may have it, the oldest one."""
        connect = self._connect_of(resource)
        claims = (each for each in self._store.claims(resource.topic_name) if self._connect_of(each) == connect)
        return next(claims, resource)

    def feature_claims(self, resource: FeatureSet) -> Claims:
        """Which features of a set other sets of the same cluster have as well, and which of those sets are older."""
        connect, own = self._connect_of(resource), {each.name for each in resource.spec.features}
        winners: dict[str, str] = {}
        shared: set[str] = set()
        is_older = True
        for each in self._store.feature_sets():
            if each.metadata.uid == resource.metadata.uid:
                is_older = False
            elif self._connect_of(each) == connect:
                common = own & {feature.name for feature in each.spec.features}
                shared |= common if each.metadata.deletion_timestamp is None else set()
                name = f"{each.metadata.namespace}/{each.metadata.name}"
                winners = {**dict.fromkeys(common, name), **winners} if is_older else winners
        return Claims(winners=winners, shared=frozenset(shared))

    def _connect_of(self, resource: KafkaTopic | FeatureSet) -> str | None:
        """Where the object's cluster is; None where there is none that it may use."""
        key = cluster_key(resource)
        stored = self._store.get(key) if key else None
        cluster = stored.resource if stored else None
        if not isinstance(cluster, KafkaCluster) or _refusal(resource, cluster) is not None:
            return None
        return cluster.spec.zookeeper.connect

    def _reach(self, cluster: KafkaCluster) -> Granted | Withheld:
        connect = cluster.spec.zookeeper.connect
        observer = self._pool.get(connect)
        observation = observer.observation
        if observation.view is not None and observation.trouble is None:
            return Granted(cluster=cluster, observer=observer, view=observation.view)
        now = asyncio.get_running_loop().time()
        left_s = self._trouble_since.setdefault(connect, now) + self._grace_s - now
        if left_s > 0:
            return Withheld(verdict=None, retry_s=left_s)
        message = f"ZooKeeper at {connect} is out of reach: {observation.trouble}"
        return Withheld(verdict=Verdict.unknown(Reason.ZOOKEEPER_UNAVAILABLE, message))

    def _observed(self, connect: str, observation: Observation) -> None:
        if observation.trouble is None:
            self._trouble_since.pop(connect, None)
        else:
            self._trouble_since.setdefault(connect, asyncio.get_running_loop().time())
        self.on_change(connect, observation)


def _ignore(_connect: str, _observation: Observation) -> None:
    """Nobody listens yet."""


def topics_changed(before: ClusterView | None, after: ClusterView) -> set[str] | None:
    """The topics that are not the same objects in both views; None where more than topics has changed."""
    if before is None or any(
        getattr(before, name) != getattr(after, name)
        for name in (
            "controller",
            "brokers",
            "reassignment",
            "preferred_election",
            "deleting",
            "features",
            "malformed",
            "cluster_id",
        )
    ):
        return None
    names = before.topics.keys() | after.topics.keys()
    return {str(name) for name in names if before.topics.get(name) is not after.topics.get(name)}


def is_about(key: Key, store: ObjectStore, topics: set[str] | None) -> bool:
    """Whether an object may have to say something about changed topics; a KafkaTopic is about a single one,
    a FeatureSet about none."""
    if topics is None:
        return True
    stored = store.get(key)
    resource = stored.resource if stored else None
    if isinstance(resource, FeatureSet):
        return False
    if not isinstance(resource, KafkaTopic):
        return True
    return resource.topic_name in topics


def _refusal(resource: AnyResource, cluster: KafkaCluster) -> Verdict | None:
    namespace = resource.metadata.namespace
    permission = cluster.spec.permission_for(namespace, home=cluster.metadata.namespace)
    if permission is None:
        message = (
            f"KafkaCluster {cluster.metadata.namespace}/{cluster.metadata.name} does not allow namespace {namespace}"
        )
        return Verdict.stalled(Reason.NAMESPACE_NOT_ALLOWED, f"{message}: add it to spec.allowedNamespaces there")
    prefix = permission.topic_prefix
    if prefix and isinstance(resource, KafkaTopic) and not resource.topic_name.startswith(prefix):
        message = f"topics of namespace {namespace} must have names that begin with {prefix}"
        return Verdict.stalled(Reason.TOPIC_PREFIX_REQUIRED, message)
    return None
