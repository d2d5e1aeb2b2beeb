"""The last known objects of the API server, and the references between them.

An intake (`object_intake`) adds them. The answers to the operator's own writes arrive separately, earlier or later than
the watch shows them. So an older version never replaces a newer one: decimal versions rise (Kubernetes guarantees that
since 1.35, and etcd always did), and other versions are taken as they come.
There may be ten thousand objects, and few of them are in use at a time. So the store keeps their JSON and the indexes
over all of them. A model with all its dictionaries is some ten times as large. It is made on demand, and recent ones
are cached.
"""

import sys
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar

import orjson
from pydantic import ValidationError

from controller_operator.metrics import BrokerLabels, Said, Unready
from controller_operator.resources import (
    KINDS,
    FeatureSet,
    KafkaCluster,
    KafkaTopic,
    PartitionReassignment,
    PreferredElection,
    RebalancePlan,
)
from controller_operator.resources.cluster_address import ClusterAddress
from controller_operator.resources.common import API_VERSION, FINALIZER, ClusterRef
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason
from controller_operator.resources.topic import DriftPolicy

Raw = dict[str, Any]
"""An object as JSON."""
AnyResource = KafkaCluster | KafkaTopic | PartitionReassignment | PreferredElection | FeatureSet | RebalancePlan

KIND_CLASSES: Final[dict[str, type[AnyResource]]] = {kind.definition.kind: kind for kind in KINDS}  # type: ignore[misc]  # KINDS is typed by their common base


class Key(NamedTuple):
    """The name of an object."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class CarriedOut(NamedTuple):
    """The Kafka cluster that an object was carried out in, and the other one that a person has accepted."""

    cluster_id: str
    accepted_id: str | None


class Placement(NamedTuple):
    """The required placement of a topic's replicas, by a KafkaTopic that corrects moves."""

    replicas: int
    """Number of replicas of each partition."""
    brokers: frozenset[int]
    """The brokers in its replicaAssignment; empty if it has none."""


class TopicUse(NamedTuple):
    """The part of a KafkaTopic that counts in the budget of its namespace."""

    age: tuple[str, str]
    """Time of its creation, and its uid."""
    topic: str
    topic_id: str | None
    """Id of its own topic; None if it has none."""
    wanted: int
    """Partitions by its spec."""
    is_requested: bool
    """True if the topic was requested and not seen yet."""
    may_grow: bool
    """False if nothing is done for it now: it is deleted, paused, stalled by its own spec, or has no right to the
    topic."""


_RUNS_ONCE: Final = frozenset(
    each.definition.kind for each in (PartitionReassignment, PreferredElection, RebalancePlan)
)
_Name = TypeVar("_Name", str, Key)
_OPEN: Final = 500
"""Models in the cache: of objects in work, and of the few objects that all others refer to."""


class _Version(NamedTuple):
    """The identity of an object, and its version."""

    uid: str
    number: str

    def is_newer_than(self, other: "_Version") -> bool:
        """Return True if this may be a later version of the same object, or if it is of another object."""
        if self.uid == other.uid and self.number.isdecimal() and other.number.isdecimal():
            return int(self.number) > int(other.number)
        return self != other

    def is_later_namesake_of(self, other: "_Version") -> bool:
        """Return True if this is of another object that was written later."""
        are_numbers = self.number.isdecimal() and other.number.isdecimal()
        return self.uid != other.uid and are_numbers and int(self.number) > int(other.number)


class StoredObject:
    """An object, raw and as a model. If the model cannot read it, `resource` is None and `error` says why."""

    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        self.key = key_of(raw)

    @cached_property
    def _read(self) -> tuple[AnyResource | None, str | None]:
        try:
            return KIND_CLASSES[self.key.kind].model_validate(self.raw), None
        except ValidationError as error:
            return None, "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:5])

    @property
    def resource(self) -> AnyResource | None:
        return self._read[0]

    @property
    def error(self) -> str | None:
        return self._read[1]

    @property
    def claim(self) -> KafkaTopic | None:
        """The parts of a KafkaTopic that claim a topic, even if the rest is unreadable: nobody else must get the topic.

        None if these parts are unreadable too, and for other kinds."""
        if isinstance(self.resource, KafkaTopic):
            return self.resource
        return _claim_of(self.raw) if self.key.kind == KafkaTopic.definition.kind else None

    @property
    def uid(self) -> str:
        return uid_of(self.raw)

    @property
    def version(self) -> str:
        """The resource version, which changes with every write."""
        return str(self.raw["metadata"].get("resourceVersion", ""))

    @property
    def owners(self) -> set[str]:
        """The uids of the object's owners."""
        return {owner["uid"] for owner in self.raw["metadata"].get("ownerReferences", ())}

    @property
    def owner_keys(self) -> list[Key]:
        """The names of the object's owners, as far as they are of the operator's kinds."""
        owners = self.raw["metadata"].get("ownerReferences", ())
        ours = [owner for owner in owners if owner["apiVersion"] == API_VERSION]
        return [Key(owner["kind"], self.key.namespace, owner["name"]) for owner in ours]


@dataclass(frozen=True, slots=True)
class _Kept:
    """The stored form of an object: its JSON, and the values that queries over all objects need."""

    version: _Version
    document: bytes
    owners: tuple[str, ...]
    cluster: Key | None
    topic: str | None
    """For a KafkaTopic: the name of its topic."""
    asks_about: Set[str] | None
    """For a move, an election or a plan that has not ended: the topics of its partitions; None if it is about all
    topics."""
    is_under_way: bool
    """True for a PartitionReassignment that has begun and not ended."""
    said: tuple[Said, ...]
    is_going: bool
    """True if the object is being deleted."""
    placement: Placement | None
    """For a KafkaTopic with driftPolicy Enforce that is not being deleted."""
    moves: frozenset[str]
    """For a PartitionReassignment: the topics of the partitions that it moves or has moved."""
    is_let_go: bool
    """True if the object is being deleted, and the operator does nothing more for it."""
    use: TopicUse | None
    """For a KafkaTopic."""
    carried_out: CarriedOut | None
    """None if its status has no cluster, if it is being deleted, or if its one run has ended."""

    def names_any(self, brokers: Collection[int]) -> bool:
        """Return True if the replicaAssignment of a placement names one of the brokers."""
        return self.placement is not None and not self.placement.brokers.isdisjoint(brokers)


class ObjectStore:
    """All known objects."""

    def __init__(self) -> None:
        self._objects: dict[Key, _Kept] = {}
        self._open: OrderedDict[Key, StoredObject] = OrderedDict()
        self._topic_claims: dict[str, set[Key]] = {}
        self._dependents: dict[Key, set[Key]] = {}
        self._askers: dict[Key, set[Key]] = {}
        """The moves and elections among the dependents that have not ended."""
        self._askers_about: dict[str, set[Key]] = {}
        self._askers_about_all: dict[Key, set[Key]] = {}
        self._owned: dict[str, set[Key]] = {}
        self._movers: dict[str, set[Key]] = {}
        self._cluster_keys: dict[Key, None] = {}
        self._under_way: dict[Key, None] = {}
        self._carried_out: dict[Key, Counter[CarriedOut]] = {}
        self._said: Counter[Said] = Counter()
        self._unready: dict[Key, Said] = {}
        self._sayings: dict[tuple[Said, ...], tuple[Said, ...]] = {}
        """Thousands of objects have equal conditions, so they share one tuple."""

    def get(self, key: Key) -> StoredObject | None:
        kept = self._objects.get(key)
        if kept is None:
            return None
        found = self._open.get(key)
        return self._keep_open(found or StoredObject(orjson.loads(kept.document)))

    def keys(self, kind: str | None = None) -> list[Key]:
        return [key for key in self._objects if kind in (None, key.kind)]

    def count(self, kind: str) -> int:
        return sum(key.kind == kind for key in self._objects)

    def uids(self, kind: str, namespace: str | None) -> dict[Key, str]:
        """Return the uids of all objects of a kind, in a namespace or (None) everywhere."""
        return {
            key: kept.version.uid
            for key, kept in self._objects.items()
            if key.kind == kind and namespace in (None, key.namespace)
        }

    def is_news(self, raw: Raw) -> bool:
        """Return True if an object is not known, or may be newer than the known version."""
        known = self._objects.get(key_of(raw))
        return known is None or _version_of(raw).is_newer_than(known.version)

    def has_later_namesake(self, raw: Raw) -> bool:
        """Return True if another object of the same name is known that was written later."""
        known, version = self._objects.get(key_of(raw)), _version_of(raw)
        return known is not None and known.version.is_later_namesake_of(version)

    def put(self, raw: Raw) -> StoredObject | None:
        """Store an object. Return it, or None if the known version is as new."""
        return self._take_in(raw) if self.is_news(raw) else None

    def put_again(self, raw: Raw) -> StoredObject | None:
        """Store an object even if the same version is known, because the API server may show more of it than before."""
        known = self._objects.get(key_of(raw))
        is_same = known is not None and known.version == _version_of(raw)
        return self._take_in(raw) if is_same or self.is_news(raw) else None

    def _take_in(self, raw: Raw) -> StoredObject:
        stored = StoredObject(raw)
        known = self._objects.get(stored.key)
        kept = self._make_kept(stored)
        self._forget_references(stored.key, known)
        self._objects[stored.key] = kept
        self._keep_references(stored.key, kept)
        return self._keep_open(stored)

    def update(self, raw: Raw) -> StoredObject:
        """Store the API server's answer about an object.

        The answer may come after the watch has shown that the object is gone. Then the object is not stored again."""
        known = self._objects.get(key_of(raw))
        if known is None or known.version.uid != uid_of(raw):
            return StoredObject(raw)
        return self.put(raw) or self._get_known(key_of(raw))

    def remove(self, key: Key, uid: str | None = None) -> StoredObject | None:
        """Forget an object. Return its last known state. With a uid, forget only that very object."""
        kept = self._objects.get(key)
        if kept is None or (uid is not None and kept.version.uid != uid):
            return None
        known = self._get_known(key)
        del self._objects[key], self._open[key]
        self._forget_references(key, kept)
        return known

    def remove_missing(self, known: Iterable[tuple[Key, str]], present: Set[str]) -> list[StoredObject]:
        """Forget the objects that are missing in a listing with these uids. Return them.

        `known` has the objects that were known before the listing was requested, with their uids. Only objects in it
        can be known to be gone."""
        gone = [self.remove(key, uid) for key, uid in known if uid not in present]
        return [each for each in gone if each]

    def count_conditions(self) -> Counter[Said]:
        """Return the numbers of objects by condition."""
        return Counter(self._said)

    def list_unready(self, limit: int) -> list[Unready]:
        """Return at most `limit` objects whose condition Ready is not True, those that need a person first."""
        by_need = sorted(self._unready.items(), key=lambda item: not _is_stalled(self._objects[item[0]].said))
        return [Unready(*key, said.status, said.reason) for key, said in by_need[:limit]]

    def dependents(self, cluster: Key) -> set[Key]:
        """Return the objects that refer to a KafkaCluster."""
        return self._dependents.get(cluster, set())

    def list_unfinished(self, cluster: Key) -> set[Key]:
        """Return the objects that need a KafkaCluster.

        These are all dependents except moves and elections that have ended, and deleted objects that the operator has
        released, even if another finalizer still holds them."""
        needing = {key for key in self.dependents(cluster) if key.kind not in _RUNS_ONCE} | self.askers(cluster)
        return {key for key in needing if not self._objects[key].is_let_go}

    def list_staying(self, cluster: Key) -> set[Key]:
        """Return those of the unfinished objects that are not being deleted."""
        return {key for key in self.list_unfinished(cluster) if not self._objects[key].is_going}

    def count_carried_out(self, cluster: Key) -> Counter[CarriedOut]:
        """Count the objects that need a KafkaCluster, by the Kafka cluster that they were carried out in."""
        return self._carried_out.get(cluster, Counter())

    def dependents_about(self, cluster: Key, topics: Iterable[str]) -> set[Key]:
        """Return the objects that refer to a KafkaCluster and name some topics of it."""
        names = [*topics]
        indexes = (self._topic_claims, self._askers_about)
        return {key for index in indexes for name in names for key in index.get(name, ())} & self.dependents(cluster)

    def askers(self, cluster: Key) -> Set[Key]:
        """Return the moves and elections of a KafkaCluster that have not ended."""
        return self._askers.get(cluster, set())

    def askers_about_all(self, cluster: Key) -> Set[Key]:
        """Return those of the askers that are about all topics."""
        return self._askers_about_all.get(cluster, set())

    def clusters_at(self, address: ClusterAddress) -> list[Key]:
        """Return the KafkaClusters with this address."""
        return [key for key, cluster in self._clusters() if cluster.spec.address == address]

    def addresses(self) -> set[ClusterAddress]:
        """Return the addresses of all KafkaClusters."""
        return {cluster.spec.address for _, cluster in self._clusters()}

    def clusters(self) -> list[KafkaCluster]:
        """Return the KafkaClusters, the oldest first."""
        found = [cluster for _, cluster in self._clusters()]
        return sorted(found, key=lambda each: (str(each.metadata.creation_timestamp), each.metadata.uid))

    def list_disks(self) -> Iterator[tuple[BrokerLabels, int]]:
        """Yield the used percent of each broker's fullest disk, by the statuses of the KafkaClusters."""
        for key, cluster in self._clusters():
            for broker in cluster.status.brokers:
                if broker.disk is not None:
                    yield BrokerLabels(key.namespace, key.name, str(broker.id)), broker.disk.used_percent

    def claims(self, topic: str) -> list[KafkaTopic]:
        """Return the KafkaTopics of any cluster that claim a topic of this name, the oldest first
        (`StoredObject.claim`).

        Among objects created in the same second, one that has the topic already comes first, so that it keeps the
        topic."""
        found = [self._get_known(key).claim for key in self.claimants(topic)]
        claims = [each for each in found if each is not None]
        return sorted(claims, key=_age)

    def find_placing(self, counts: Mapping[str, Collection[int]], brokers: Collection[int]) -> list[KafkaTopic]:
        """Return the KafkaTopics with driftPolicy Enforce that may undo a move (`plans.placement.pins`), of any
        cluster.

        Their replicaAssignment names one of the brokers or is of one of the topics, or one of the topics would get
        another number of replicas than their spec says."""
        found = {key for key, kept in self._objects.items() if kept.names_any(brokers)} if brokers else set()
        for topic, numbers in counts.items():
            for key in self._topic_claims.get(topic, ()):
                placement = self._objects[key].placement
                if placement is not None and (placement.brokers or set(numbers) - {placement.replicas}):
                    found.add(key)
        topics = [self._get_known(key).resource for key in sorted(found)]
        return [each for each in topics if isinstance(each, KafkaTopic)]

    def movers(self, topic: str) -> list[PartitionReassignment]:
        """Return the PartitionReassignments of any cluster that move, or have moved, partitions of a topic of this
        name."""
        found = [self._get_known(key).resource for key in sorted(self._movers.get(topic, ()))]
        return [each for each in found if isinstance(each, PartitionReassignment)]

    def claimants(self, topic: str) -> Set[Key]:
        """Return the KafkaTopics of any cluster that claim a topic of this name."""
        return self._topic_claims.get(topic, set())

    def feature_sets(self) -> list[FeatureSet]:
        """Return the FeatureSets of all clusters, the oldest first."""
        found = [self._get_known(key).resource for key in self.keys(FeatureSet.definition.kind)]
        sets = [each for each in found if isinstance(each, FeatureSet)]
        return sorted(sets, key=lambda each: (str(each.metadata.creation_timestamp), each.metadata.uid))

    def moves_under_way(self, topics: Iterable[str]) -> list[PartitionReassignment]:
        """Return the PartitionReassignments of all clusters that have begun to move some of the topics and not
        ended."""
        about = {key for topic in topics for key in self._askers_about.get(topic, ())}
        found = [self._get_known(key).resource for key in self._under_way if key in about]
        return [each for each in found if isinstance(each, PartitionReassignment)]

    def list_moving(self, namespace: str) -> list[PartitionReassignment]:
        """Return the PartitionReassignments of a namespace that have begun and not ended."""
        found = [self._get_known(key).resource for key in self._under_way if key.namespace == namespace]
        return [each for each in found if isinstance(each, PartitionReassignment)]

    def list_uses(self, cluster: Key, namespace: str | None = None) -> dict[Key, TopicUse]:
        """Return what the KafkaTopics that refer to a KafkaCluster use, in a namespace or (None) in all of them."""
        keys = (key for key in self.dependents(cluster) if namespace in (None, key.namespace))
        return {key: use for key in keys if (use := self._objects[key].use) is not None}

    def moves_of(self, owner: AnyResource) -> dict[str, PartitionReassignment]:
        """Return the PartitionReassignments that an object owns, by name.

        Only those in its namespace count, because an object elsewhere may name any uid as its owner's."""
        uid, namespace = owner.metadata.uid, owner.metadata.namespace
        keys = (key for key in self._owned.get(uid, ()) if key.namespace == namespace)
        owned = {key.name: self._get_known(key).resource for key in keys}
        return {name: move for name, move in owned.items() if isinstance(move, PartitionReassignment)}

    def _clusters(self) -> Iterator[tuple[Key, KafkaCluster]]:
        for key in self._cluster_keys:
            resource = self._get_known(key).resource
            if isinstance(resource, KafkaCluster):
                yield key, resource

    def _get_known(self, key: Key) -> StoredObject:
        stored = self.get(key)
        assert stored is not None
        return stored

    def _keep_open(self, stored: StoredObject) -> StoredObject:
        self._open[stored.key] = stored
        self._open.move_to_end(stored.key)
        if len(self._open) > _OPEN:
            self._open.popitem(last=False)
        return stored

    def _make_kept(self, stored: StoredObject) -> _Kept:
        resource, claim = stored.resource, stored.claim
        conditions = resource.status.conditions if resource is not None else ()
        said = tuple(Said(stored.key.kind, each.type, each.status, each.reason) for each in conditions)
        cluster = cluster_key(resource)
        is_going = stored.raw["metadata"].get("deletionTimestamp") is not None
        return _Kept(
            version=_version_of(stored.raw),
            document=orjson.dumps(stored.raw),
            owners=tuple(stored.owners),
            cluster=cluster,
            topic=claim.topic_name if claim is not None else None,
            asks_about=_asks_about(resource),
            is_under_way=isinstance(resource, PartitionReassignment) and resource.status.is_under_way,
            said=self._sayings.setdefault(said, said),
            is_going=is_going,
            is_let_go=is_going and FINALIZER not in stored.raw["metadata"].get("finalizers", ()),
            placement=_placement_of(resource),
            moves=_moves(resource),
            use=_find_use(resource),
            carried_out=_find_carried_out(resource),
        )

    def _keep_references(self, key: Key, kept: _Kept) -> None:
        self._said.update(kept.said)
        if (ready := _unready_of(kept.said)) is not None:
            self._unready[key] = ready
        for owner in kept.owners:
            self._owned.setdefault(owner, set()).add(key)
        if kept.cluster is not None:
            self._dependents.setdefault(kept.cluster, set()).add(key)
            if kept.carried_out is not None:
                self._carried_out.setdefault(kept.cluster, Counter())[kept.carried_out] += 1
            if kept.asks_about is None or kept.asks_about:
                self._askers.setdefault(kept.cluster, set()).add(key)
            if kept.asks_about is None:
                self._askers_about_all.setdefault(kept.cluster, set()).add(key)
        for topic in kept.asks_about or ():
            self._askers_about.setdefault(topic, set()).add(key)
        if key.kind == KafkaCluster.definition.kind:
            self._cluster_keys[key] = None
        if kept.is_under_way:
            self._under_way[key] = None
        for topic in kept.moves:
            self._movers.setdefault(topic, set()).add(key)
        if kept.topic is not None:
            self._topic_claims.setdefault(kept.topic, set()).add(key)

    def _forget_references(self, key: Key, kept: _Kept | None) -> None:
        if kept is None:
            return
        self._said.subtract(kept.said)
        self._said = +self._said
        self._unready.pop(key, None)
        for owner in kept.owners:
            _discard(self._owned, owner, key)
        if kept.cluster is not None:
            _discard(self._dependents, kept.cluster, key)
            if kept.carried_out is not None:
                self._carried_out[kept.cluster] -= Counter((kept.carried_out,))
                if not self._carried_out[kept.cluster]:
                    del self._carried_out[kept.cluster]
            _discard(self._askers, kept.cluster, key)
            _discard(self._askers_about_all, kept.cluster, key)
        for topic in kept.asks_about or ():
            _discard(self._askers_about, topic, key)
        self._cluster_keys.pop(key, None)
        self._under_way.pop(key, None)
        for topic in kept.moves:
            _discard(self._movers, topic, key)
        if kept.topic is not None:
            _discard(self._topic_claims, kept.topic, key)


def _asks_about(resource: AnyResource | None) -> Set[str] | None:
    """Return the value of `asks_about`; empty except for moves and elections that have not ended."""
    match resource:
        case PartitionReassignment(ending=None):
            # A drain is planned over all partitions until it begins.
            is_open = resource.spec.drain_brokers is not None and not resource.status.is_under_way
            return None if is_open else frozenset(str(each.topic) for each in resource.targets)
        case PreferredElection(ending=None):
            if resource.spec.all_partitions:
                return None
            named = (each.topic for each in resource.spec.partitions or ())
            return frozenset(map(str, (*(resource.spec.topics or ()), *named)))
        case RebalancePlan(ending=None):
            return None
        case _:
            return frozenset()


def _placement_of(resource: AnyResource | None) -> Placement | None:
    if not isinstance(resource, KafkaTopic) or resource.metadata.deletion_timestamp is not None:
        return None
    if resource.spec.drift_policy is not DriftPolicy.ENFORCE:
        return None
    assignment = resource.spec.replica_assignment or ()
    brokers = frozenset(broker for replicas in assignment for broker in replicas)
    return Placement(resource.spec.replica_count, brokers)


def _find_use(resource: AnyResource | None) -> TopicUse | None:
    if not isinstance(resource, KafkaTopic):
        return None
    about, status = resource.metadata, resource.status
    stalled = status.condition(ConditionType.STALLED)
    is_stalled = stalled is not None and stalled.observed_generation == about.generation
    is_held = is_stalled and stalled is not None and stalled.reason is not Reason.BUDGET_EXCEEDED
    is_others = status.owner is not None
    return TopicUse(
        age=(str(about.creation_timestamp), about.uid),
        topic=resource.topic_name,
        topic_id=None if is_others else status.topic_id,
        wanted=resource.spec.partition_count,
        is_requested=status.is_requested,
        may_grow=about.deletion_timestamp is None and not resource.is_paused and not is_held and not is_others,
    )


def _moves(resource: AnyResource | None) -> frozenset[str]:
    if not isinstance(resource, PartitionReassignment):
        return frozenset()
    return frozenset(sys.intern(str(each.topic)) for each in resource.targets)


def _find_carried_out(resource: AnyResource | None) -> CarriedOut | None:
    if resource is None or resource.status.cluster_id is None or resource.metadata.deletion_timestamp is not None:
        return None
    if isinstance(resource, PartitionReassignment | PreferredElection | RebalancePlan) and resource.ending is not None:
        return None
    return CarriedOut(sys.intern(resource.status.cluster_id), resource.metadata.accepted_cluster_id)


def _unready_of(said: tuple[Said, ...]) -> Said | None:
    """Return the condition Ready; None if it is True, or if there is none yet."""
    ready = next((each for each in said if each.type == ConditionType.READY), None)
    return ready if ready is not None and ready.status != ConditionStatus.TRUE else None


def _is_stalled(said: tuple[Said, ...]) -> bool:
    return any(each.type == ConditionType.STALLED for each in said)


def _discard(index: dict[_Name, set[Key]], name: _Name, key: Key) -> None:
    """Remove a key from an index, and the name if it has no keys left."""
    keys = index.get(name, set())
    keys.discard(key)
    if not keys:
        index.pop(name, None)


def _age(claim: KafkaTopic) -> tuple[str, bool, str]:
    about = claim.metadata
    return str(about.creation_timestamp), claim.status.topic_id is None, about.uid


_LEAST_OF_A_TOPIC: Final = {"partitions": 1, "replicationFactor": 1}


def _claim_of(raw: Raw) -> KafkaTopic | None:
    spec, status = raw.get("spec"), raw.get("status")
    named = {name: spec[name] for name in ("clusterRef", "topicName") if name in spec} if isinstance(spec, dict) else {}
    had = {name: status[name] for name in ("topicId",) if name in status} if isinstance(status, dict) else {}
    try:
        return KafkaTopic.model_validate({**raw, "spec": {**_LEAST_OF_A_TOPIC, **named}, "status": had})
    except ValidationError:
        return None


def key_of(raw: Raw) -> Key:
    return Key(raw["kind"], raw["metadata"]["namespace"], raw["metadata"]["name"])


def uid_of(raw: Raw) -> str:
    return str(raw["metadata"].get("uid", ""))


def _version_of(raw: Raw) -> _Version:
    return _Version(uid_of(raw), str(raw["metadata"].get("resourceVersion", "")))


def key_of_resource(resource: AnyResource) -> Key:
    return Key(resource.definition.kind, resource.metadata.namespace, resource.metadata.name)


def cluster_key(resource: AnyResource | None) -> Key | None:
    """Return the KafkaCluster that an object refers to; None for a KafkaCluster itself."""
    if resource is None or isinstance(resource, KafkaCluster):
        return None
    ref: ClusterRef = resource.spec.cluster_ref
    return Key(KafkaCluster.definition.kind, ref.namespace or resource.metadata.namespace, ref.name)
