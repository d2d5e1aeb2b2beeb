"""Finds the cluster of an object, or the reason why it gets none: the reference, the permission, and the cluster's
state.

A Kafka cluster is identified by its own id, not by the address in a KafkaCluster: several KafkaClusters may lead to
one, with other hosts, or the same hosts in another order. Ownership of topics is decided over all of them. The oldest
one with a list of allowed namespaces decides for all. Otherwise anybody could make a KafkaCluster of their own and
grant themselves every right.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from controller_core.client.transport.request_client import RequestClient
from controller_core.model.ids import BrokerId
from controller_core.model.metadata import PreferredElectionPlan, ReassignmentPlan
from controller_core.model.snapshot import Snapshot
from controller_core.zk import paths
from controller_operator.clusters.cluster import Asking, Cluster
from controller_operator.clusters.opening import OpenPoller, make_poller, open_clusters
from controller_operator.clusters.pool import ClusterPool, Connect
from controller_operator.clusters.throttle_record import OpenRecord, refuse_record
from controller_operator.kafka.broker_listeners import ListenerOf, OpenClient, any_plaintext
from controller_operator.kubernetes.object_store import (
    AnyResource,
    ObjectStore,
    TopicUse,
    cluster_key,
    key_of_resource,
)
from controller_operator.observation.observation import Observation
from controller_operator.plans.cluster_change import find_obstacle, find_own_change
from controller_operator.plans.consent.budget import Allowance
from controller_operator.plans.feature_set.planner import Claims
from controller_operator.plans.outcome import Verdict
from controller_operator.plans.permission import Permission
from controller_operator.resources import FeatureSet, KafkaCluster, KafkaTopic, PartitionReassignment, RebalancePlan
from controller_operator.resources.cluster import ANY_NAMESPACE, AllowedNamespace
from controller_operator.resources.cluster_address import AtZooKeeper, ClusterAddress
from controller_operator.resources.common import FINALIZER
from controller_operator.resources.conditions import Reason

_POLL_S: Final = 1.0
_NOT_AS_SAID: Final = (Reason.CHROOT_NOT_FOUND, Reason.NOT_SUPPORTED, Reason.NOT_ADMITTED)
"""A server answers, but differs from the KafkaCluster or a file. Somebody must change something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """A cluster that can be read and written now."""

    cluster: KafkaCluster
    kafka: Cluster
    view: Snapshot
    permission: Permission
    """The rights of the object's namespace. Every step is checked against them before it is carried out."""
    asking: Asking = field(default_factory=Asking)
    """The servers to ask."""
    to_remove: frozenset[BrokerId] = frozenset()
    """The brokers to be removed, by the KafkaClusters."""


class ClusterIdentity(NamedTuple):
    """The identity of a Kafka cluster, regardless of its address."""

    cluster_id: str
    chroot: str
    """Needed because a copy of a cluster in another part of the same ZooKeeper has the same id."""


class TopicClaims(NamedTuple):
    """The other objects that claim the topic of an object."""

    owner: KafkaTopic | None = None
    """The older one that owns the topic; None if the object itself owns it."""
    heir: KafkaTopic | None = None
    """The oldest one that is not being deleted."""
    rivals: tuple[str, ...] = ()
    """Those that claim a topic of this name in a cluster that counts as another one, as namespace/name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """The object gets no cluster now. `verdict` None: the trouble may be momentary, and is not reported yet."""

    verdict: Verdict | None
    retry_s: float = _POLL_S
    is_missing: bool = False
    """True if the KafkaCluster itself does not exist."""


class ClusterAccess:
    """The clusters of the objects in a store."""

    def __init__(
        self,
        store: ObjectStore,
        connect: Connect,
        open_client: OpenClient = RequestClient,
        *,
        unreachable_grace_s: float,
        objects_unreachable_grace_s: float = 60.0,
        listener_of: ListenerOf = any_plaintext,
        open_poller: OpenPoller = make_poller,
        open_record: OpenRecord = refuse_record,
    ) -> None:
        """`unreachable_grace_s`: time after which KafkaClusters report an outage; `objects_unreachable_grace_s`: the
        same for their objects, which are many. `connect`, `open_client` and `open_poller` reach ZooKeeper and brokers;
        `listener_of` finds the listener of a cluster's brokers; `open_record` opens the record of its throttles."""
        self._store = store
        self._grace_s = unreachable_grace_s
        self._objects_grace_s = objects_unreachable_grace_s
        self._trouble_since: dict[ClusterAddress, float] = {}
        self.on_change: Callable[[ClusterAddress, Observation], None] = _ignore
        """Called with every new observation of the cluster at an address."""
        open_cluster = open_clusters(connect, open_client, listener_of, open_poller, open_record)
        self._pool = ClusterPool(open_cluster, self._on_observation)
        self._listener_of = listener_of

    @property
    def unreachable(self) -> int:
        """The number of clusters that are out of reach."""
        return len(self._trouble_since)

    async def keep_needed(self) -> None:
        """Stop the observation of clusters that no KafkaCluster names any longer."""
        needed = self._store.addresses()
        await self._pool.keep_only(needed)
        for gone in set(self._trouble_since) - needed:
            del self._trouble_since[gone]

    async def close(self) -> None:
        await self._pool.close()

    def find_grant(self, resource: AnyResource) -> Granted | Withheld:
        """Return the cluster of an object; for a KafkaCluster, its own."""
        if isinstance(resource, KafkaCluster):
            return self._reach(resource, Permission(namespace=resource.metadata.namespace), self._grace_s)
        key = cluster_key(resource)
        stored = self._store.get(key) if key else None
        if stored is not None and stored.resource is None:
            message = f"{key} cannot be read by this version of the operator: {stored.error}"
            return Withheld(verdict=Verdict.make_working(Reason.INVALID_SPEC, message))
        if stored is None or not isinstance(stored.resource, KafkaCluster):
            message = f"there is no {key}: create it, or correct clusterRef (which needs a new object)"
            return Withheld(verdict=Verdict.make_working(Reason.CLUSTER_NOT_FOUND, message), is_missing=True)
        permission = self._permission(resource, stored.resource)
        if isinstance(permission, Verdict):
            return Withheld(verdict=permission)
        granted = self._reach(stored.resource, permission, self._objects_grace_s)
        trouble = _identity_trouble(granted) if isinstance(granted, Granted) else None
        return Withheld(verdict=trouble) if trouble else granted

    def find_identity(self, cluster: KafkaCluster) -> ClusterIdentity | ClusterAddress:
        """Return the identity of a KafkaCluster's Kafka cluster: its address as long as the id is not known."""
        address, present = cluster.spec.address, self._present_id(cluster)
        change = find_own_change(cluster, cluster, present)
        cluster_id = present if change is not None and change.is_accepted else cluster.status.cluster_id or present
        return ClusterIdentity(cluster_id, address.chroot) if cluster_id else address

    def _present_id(self, cluster: KafkaCluster) -> str | None:
        """Return the id of the Kafka cluster that was last seen at the address of a KafkaCluster."""
        view = self._pool.find_last_view(cluster.spec.address)
        return view.cluster_id if view else None

    def find_siblings(self, cluster: KafkaCluster) -> list[KafkaCluster]:
        """Return the KafkaClusters for the same Kafka cluster, including this one, the oldest first."""
        identity = self.find_identity(cluster)
        return [each for each in self._store.clusters() if self.find_identity(each) == identity]

    def find_decider(self, cluster: KafkaCluster) -> KafkaCluster | None:
        """Return the other KafkaCluster for the same Kafka cluster whose `allowedNamespaces` also applies to this one.

        The oldest KafkaCluster with such a list decides; None if that is this one, or if none has a list."""
        found = self._oldest_with_list(cluster)
        return found if found is not None and found.metadata.uid != cluster.metadata.uid else None

    def _oldest_with_list(self, cluster: KafkaCluster) -> KafkaCluster | None:
        return next((each for each in self.find_siblings(cluster) if each.spec.allowed_namespaces is not None), None)

    def find_claims(self, resource: KafkaTopic) -> TopicClaims:
        """Return the other claims on a topic. The oldest object that claims it, and may have it, owns it.

        A deleted object that the operator has released claims nothing, even if another finalizer still holds it."""
        uid = resource.metadata.uid
        claims = [each for each in self._store.claims(resource.topic_name) if not _is_let_go(each)]
        if [each.metadata.uid for each in claims] == [uid]:
            return TopicClaims()  # as nearly always
        identity = self._identity_of(resource)
        is_same = [(each, self._identity_of(each) == identity) for each in claims]
        same = [each for each, is_one in is_same if is_one]
        live = (each for each in same if each.metadata.uid != uid and each.metadata.deletion_timestamp is None)
        return TopicClaims(
            owner=same[0] if same and same[0].metadata.uid != uid else None,
            heir=next(live, None) if identity is not None else None,
            rivals=tuple(each.metadata.full_name for each, is_one in is_same if not is_one),
        )

    def filter_same_cluster(
        self, resource: PartitionReassignment, moves: Iterable[PartitionReassignment]
    ) -> tuple[PartitionReassignment, ...]:
        """Return those of the moves that are for the same Kafka cluster as an object."""
        identity = self._identity_of(resource)
        return tuple(each for each in moves if self._identity_of(each) == identity)

    def find_pins(
        self,
        resource: PartitionReassignment | RebalancePlan,
        counts: Mapping[str, Collection[int]],
        brokers: Collection[BrokerId],
    ) -> tuple[KafkaTopic, ...]:
        """Return the KafkaTopics that may undo the moves of another object (`ObjectStore.find_placing`)."""
        found = self._store.find_placing(counts, brokers)
        identity = self._identity_of(resource) if found else None
        return tuple(
            each
            for each in found
            if self._identity_of(each) == identity
            and self.find_claims(each).owner is None
            and not _is_own_move(resource, self._store.moves_of(each))
        )

    def find_movers(self, resource: KafkaTopic) -> tuple[PartitionReassignment, ...]:
        """Return the objects that move, or have moved, partitions of the same topic."""
        found = self._store.movers(resource.topic_name)
        identity = self._identity_of(resource) if found else None
        return tuple(each for each in found if self._identity_of(each) == identity)

    def find_uses(self, cluster: KafkaCluster, namespace: str) -> tuple[TopicUse, ...]:
        """Return what the KafkaTopics of a namespace use of the Kafka cluster of a KafkaCluster."""
        keys = map(key_of_resource, self.find_siblings(cluster))
        return tuple(use for key in keys for use in self._store.list_uses(key, namespace).values())

    def list_allowances(self, cluster: KafkaCluster) -> tuple[tuple[Allowance, tuple[TopicUse, ...]], ...]:
        """Return the budgets that a KafkaCluster gives to namespaces, each with its use."""
        entries = cluster.spec.allowed_namespaces or ()
        if not any(entry.budget for entry in entries):
            return ()
        uses: dict[str, list[TopicUse]] = {}
        for sibling in self.find_siblings(cluster):
            for key, use in self._store.list_uses(key_of_resource(sibling)).items():
                uses.setdefault(key.namespace, []).append(use)
        named = {entry.namespace for entry in entries} - {ANY_NAMESPACE}
        found = []
        for namespace in sorted(named | uses.keys()):
            entry = cluster.spec.permission_for(namespace, home=cluster.metadata.namespace)
            allowance = _make_allowance(namespace, entry) if entry is not None else None
            if allowance is not None:
                found.append((allowance, tuple(uses.get(namespace, ()))))
        return tuple(found)

    def feature_claims(self, resource: FeatureSet) -> Claims:
        """Return the features that other sets of the same cluster have as well, and the older ones of those sets."""
        identity, own = self._identity_of(resource), {each.name for each in resource.spec.features}
        winners: dict[str, str] = {}
        shared: set[str] = set()
        is_older = True
        for each in self._store.feature_sets():
            if each.metadata.uid == resource.metadata.uid:
                is_older = False
            elif self._identity_of(each) == identity:
                common = own & {feature.name for feature in each.spec.features}
                shared |= common if each.metadata.deletion_timestamp is None else set()
                name = each.metadata.full_name
                winners = {**dict.fromkeys(common, name), **winners} if is_older else winners
        return Claims(winners=winners, shared=frozenset(shared))

    def _identity_of(
        self, resource: KafkaTopic | FeatureSet | PartitionReassignment | RebalancePlan
    ) -> ClusterIdentity | ClusterAddress | None:
        """Return the Kafka cluster that the object is for; None if it may use none."""
        key = cluster_key(resource)
        stored = self._store.get(key) if key else None
        cluster = stored.resource if stored else None
        if not isinstance(cluster, KafkaCluster) or isinstance(self._permission(resource, cluster), Verdict):
            return None
        if find_obstacle(resource, cluster, self._present_id(cluster)) is not None:
            return None
        return self.find_identity(cluster)

    def _find_brokers_to_remove(self, cluster: KafkaCluster) -> frozenset[BrokerId]:
        """Return the brokers to be removed. Any KafkaCluster may name some for all objects of the same Kafka cluster,
        unless another one decides about its use."""
        listing = self._oldest_with_list(cluster)
        saying = self.find_siblings(cluster) if listing is None else (cluster, listing)
        return frozenset(broker for each in saying for broker in each.spec.brokers_to_remove or ())

    def _permission(self, resource: AnyResource, cluster: KafkaCluster) -> Permission | Verdict:
        """Return the rights of the object's namespace on the cluster, or why the object gets nothing of it."""
        namespace = resource.metadata.namespace
        listing = self._oldest_with_list(cluster)
        prefixes: dict[str, None] = {}
        allowances: list[Allowance] = []
        for each in (cluster, listing) if listing is not None else (cluster,):
            entry = each.spec.permission_for(namespace, home=each.metadata.namespace)
            if entry is None:
                return _make_refusal(namespace, cluster, each)
            prefixes |= {entry.topic_prefix: None} if entry.topic_prefix else {}
            if (allowance := _make_allowance(namespace, entry)) is not None and allowance not in allowances:
                allowances.append(allowance)
        permission = Permission(namespace=namespace, prefixes=tuple(prefixes), allowances=tuple(allowances))
        return permission.refuse(resource) or permission

    def _reach(self, cluster: KafkaCluster, permission: Permission, grace_s: float) -> Granted | Withheld:
        address = cluster.spec.address
        kafka = self._pool.get(address)
        observation = kafka.observation
        if observation.view is not None and observation.trouble is None:
            return Granted(
                cluster=cluster,
                kafka=kafka,
                view=observation.view,
                permission=permission,
                to_remove=self._find_brokers_to_remove(cluster),
                asking=Asking(bootstrap_servers=cluster.spec.bootstrap_servers, listener=self._listener_of(address)),
            )
        if observation.is_being_read:
            return Withheld(verdict=None, retry_s=max(grace_s, _POLL_S))
        now = asyncio.get_running_loop().time()
        left_s = self._trouble_since.setdefault(address, now) + grace_s - now
        if left_s > 0:
            return Withheld(verdict=None, retry_s=left_s)
        if observation.reason in _NOT_AS_SAID:
            return Withheld(verdict=Verdict.make_working(observation.reason, f"{address}: {observation.trouble}"))
        who = "ZooKeeper at" if isinstance(address, AtZooKeeper) else "the cluster at"
        message = f"{who} {address} is out of reach: {observation.trouble}"
        return Withheld(verdict=Verdict.make_unknown(observation.reason, message))

    def _on_observation(self, address: ClusterAddress, observation: Observation) -> None:
        if observation.trouble is None:
            self._trouble_since.pop(address, None)
        else:
            self._trouble_since.setdefault(address, asyncio.get_running_loop().time())
        self.on_change(address, observation)


def _is_own_move(move: PartitionReassignment | RebalancePlan, owned: Mapping[str, PartitionReassignment]) -> bool:
    """Return True if a KafkaTopic that owns these moves made this one."""
    found = owned.get(move.metadata.name)
    return found is not None and found.metadata.uid == move.metadata.uid


def _is_let_go(topic: KafkaTopic) -> bool:
    """Return True if the object is being deleted, and nothing more is done for it."""
    return topic.metadata.deletion_timestamp is not None and FINALIZER not in topic.metadata.finalizers


def _ignore(_address: ClusterAddress, _observation: Observation) -> None:
    """Do nothing, because nobody listens yet."""


_CONCERNS_ALL: Final = ("controller", "brokers", "features", "malformed", "cluster_id")
"""Any object may wait for one of these. Brokers are included because a topic may wait for one that it names and has no
replica on, or for their number. They change seldom, unlike the controller's requests, which change with each
partition."""


def topics_changed(before: Snapshot | None, after: Snapshot) -> set[str] | None:
    """Return the topics that differ between two views; None if more has changed, or if a view in between was missed.

    Requests for moves and elections concern only moves and elections (`requests_changed`), because their effect shows
    in the topics themselves."""
    if (
        before is None
        or after.version != before.version + 1
        or any(getattr(before, name) != getattr(after, name) for name in _CONCERNS_ALL)
    ):
        return None
    return {str(name) for name in after.changed | (before.deleting ^ after.deleting)}


def requests_changed(before: Snapshot, after: Snapshot) -> bool:
    """Return True if the requests to the controller in ZooKeeper have changed."""
    return _requests(before) != _requests(after)


def way_changed(before: Snapshot, after: Snapshot) -> bool:
    """Return True if a request has appeared or disappeared, because others wait for that."""
    return [each is None for each in _requests(before)] != [each is None for each in _requests(after)]


def _requests(view: Snapshot) -> tuple[ReassignmentPlan | None, PreferredElectionPlan | None]:
    return view.reassignment, view.preferred_election


def _identity_trouble(granted: Granted) -> Verdict | None:
    """Return why the cluster's identity is not certain; None if it is."""
    cluster, view = granted.cluster, granted.view
    name = cluster.metadata.full_name
    if view.cluster_id is None:
        message = (
            f"the Kafka cluster of KafkaCluster {name} has no id yet: its first broker writes {paths.CLUSTER_ID}, and "
            "before that it is unknown if another KafkaCluster is for the same one"
        )
        return Verdict.make_working(Reason.CLUSTER_NOT_IDENTIFIED, message)
    return None


def _make_allowance(namespace: str, entry: AllowedNamespace) -> Allowance | None:
    """Return the budget of an entry. The prefix of an entry for all namespaces belongs to none of them."""
    if entry.budget is None:
        return None
    prefix = entry.topic_prefix if entry.namespace != ANY_NAMESPACE else None
    return Allowance(namespace=namespace, budget=entry.budget, prefix=prefix)


def _make_refusal(namespace: str, cluster: KafkaCluster, refusing: KafkaCluster) -> Verdict:
    name = refusing.metadata.full_name
    same = "" if refusing.metadata.uid == cluster.metadata.uid else ", which is for the same Kafka cluster and older,"
    message = f"KafkaCluster {name}{same} does not allow namespace {namespace}: add it to spec.allowedNamespaces there"
    return Verdict.make_stalled(Reason.NAMESPACE_NOT_ALLOWED, message)
