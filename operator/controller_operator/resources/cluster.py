"""KafkaCluster: where a Kafka cluster is, who may use it, and how it is doing."""

from enum import StrEnum
from typing import Annotated, ClassVar, Final, Self

from pydantic import ConfigDict, Field, model_validator

from controller_core.model.ids import BrokerEpoch, BrokerId, ControllerEpoch
from controller_operator.resources.cluster_address import AtBrokers, AtZooKeeper, ClusterAddress
from controller_operator.resources.common import (
    AGE,
    MESSAGE,
    READY,
    REASON,
    Column,
    Definition,
    PartitionCounts,
    Resource,
    Spec,
    Status,
    condition_column,
)
from controller_operator.resources.conditions import ConditionType
from controller_operator.resources.schema import (
    MAX_STATUS_ENTRIES,
    TOPIC_CHARACTERS,
    Broker,
    Model,
    Observed,
    Rule,
    Timestamp,
    keyed_by,
    rules,
)

ANY_NAMESPACE: Final = "*"
MAX_OWNERLESS_LIMITS: Final = 100
MAX_TOPICS_OF_LIMIT: Final = 20

MAX_TO_REMOVE: Final = 100
NEARLY_FULL_PERCENT: Final = 90
_HOST_AND_PORT: Final = r"([\w.-]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}"
_CHROOT: Final = r"(/[^/\s,]+)*"
_SAYS_WHERE: Final = "give zookeeper, or bootstrapServers of a cluster without ZooKeeper"


class ZooKeeper(Model):
    """Where the cluster's ZooKeeper is."""

    connect: str = Field(
        min_length=1,
        max_length=2048,
        json_schema_extra=rules(
            Rule(
                f"self.matches(r'^{_HOST_AND_PORT}(,{_HOST_AND_PORT})*{_CHROOT}$')",
                "zookeeper.connect is host:port[,host:port...][/chroot], such as zk-0.zk:2181,zk-1.zk:2181/kafka",
            )
        ),
    )
    """The same as the brokers' zookeeper.connect: host:port, more of them after commas, and a chroot at the end."""


class AllowedNamespace(Model):
    """A namespace whose resources may refer to the cluster."""

    namespace: str = Field(
        min_length=1,
        max_length=63,
        json_schema_extra=rules(
            Rule(
                "self == '*' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
                "namespace is the name of a namespace, or '*' for all of them",
            )
        ),
    )
    """Name of the namespace, or * for all that have no entry of their own."""

    topic_prefix: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        json_schema_extra=rules(Rule(TOPIC_CHARACTERS, "a topic prefix has only the characters a-z A-Z 0-9 . _ -")),
    )
    """What the names of this namespace's topics must begin with, also of those that it moves or has elections for; any name
    when left out. With a prefix the namespace may do nothing that is about the whole cluster, such as FeatureSets."""


class KafkaClusterSpec(Spec):
    """Where the cluster is, and who may use it."""

    model_config = ConfigDict(
        json_schema_extra=rules(Rule("has(self.zookeeper) || has(self.bootstrapServers)", _SAYS_WHERE))
    )

    zookeeper: ZooKeeper | None = None
    """The ZooKeeper ensemble that holds the cluster's metadata. Left out for a cluster that has none (KRaft), which is
    seen and told all through bootstrapServers."""

    bootstrap_servers: str | None = Field(
        default=None,
        min_length=1,
        max_length=2048,
        json_schema_extra=rules(
            Rule(
                f"self.matches(r'^{_HOST_AND_PORT}(,{_HOST_AND_PORT})*$')",
                "bootstrapServers is host:port[,host:port...], such as kafka-0.kafka:9092,kafka-1.kafka:9092",
            )
        ),
    )
    """Brokers to ask: host:port, more of them after commas. Beside zookeeper what ZooKeeper has no way to; when left out,
    the addresses that the brokers register there are used, and a login of the operator is shown to those alone. Without
    zookeeper everything, and a login is shown to them where a file of the operator's properties names them all."""

    allowed_namespaces: (
        Annotated[
            tuple[AllowedNamespace, ...],
            Field(min_length=1, max_length=500, json_schema_extra=keyed_by("namespace")),
        ]
        | None
    ) = None
    """The namespaces whose resources may refer to this cluster. When left out, only its own; when given, the list is
    complete, and the cluster's own namespace needs an entry too. An entry with a name goes before the one with *. Of
    several KafkaClusters for one Kafka cluster the oldest one with a list decides for all."""

    brokers_to_remove: (
        Annotated[
            tuple[Broker, ...],
            Field(min_length=1, max_length=MAX_TO_REMOVE, json_schema_extra={"x-kubernetes-list-type": "set"}),
        ]
        | None
    ) = None
    """The brokers that are to be removed from the cluster. No object puts a new replica on them: topics are created and
    grow on the others, and a replicaAssignment that names one of them is not carried out there. What they hold stays until
    a PartitionReassignment with drainBrokers moves it away."""

    disk_nearly_full_percent: int = Field(default=NEARLY_FULL_PERCENT, ge=1, le=100)
    """The percent from which a broker's disk counts as nearly full, so that the cluster is Degraded. A broker whose disk is
    full stops, and deletes nothing before it is up again."""

    @model_validator(mode="after")
    def _says_where_it_is(self) -> Self:
        """The rule of the schema, for an object that was stored before there was that rule."""
        if self.zookeeper is None and self.bootstrap_servers is None:
            raise ValueError(_SAYS_WHERE)
        return self

    @property
    def address(self) -> ClusterAddress:
        """Where the cluster is."""
        if self.zookeeper is not None:
            return AtZooKeeper(self.zookeeper.connect)
        return AtBrokers(self.bootstrap_servers or "")

    def permission_for(self, namespace: str, *, home: str) -> AllowedNamespace | None:
        """The entry that lets resources in `namespace` use the cluster, which is in `home`; None where nothing does."""
        if self.allowed_namespaces is None:
            return AllowedNamespace(namespace=home) if namespace == home else None
        entries = {entry.namespace: entry for entry in self.allowed_namespaces}
        return entries.get(namespace) or entries.get(ANY_NAMESPACE)


class ControllerKind(StrEnum):
    """Which program is the cluster's controller."""

    KONTROLLER = "Kontroller"
    KAFKA = "Kafka"
    KRAFT = "KRaft"


class ControllerStatus(Observed):
    """The cluster's controller."""

    id: BrokerId
    """Id that the controller goes by: a broker's, or in a cluster without ZooKeeper the active controller's."""

    epoch: ControllerEpoch
    """Epoch of the controller: rises by one with every new controller."""

    kind: ControllerKind
    """Kontroller, Kafka where one of the brokers is the controller, or KRaft where a quorum of Kafka's controllers is."""


class BrokerState(StrEnum):
    """Whether a broker is there."""

    REGISTERED = "Registered"
    MISSING = "Missing"


class BrokerRemoval(StrEnum):
    """How far the removal of a broker is."""

    HOLDS_REPLICAS = "HoldsReplicas"
    EMPTY = "Empty"


class BrokerDisk(Observed):
    """The fullest disk of a broker's log directories."""

    directory: str
    """The log directory."""

    used_percent: int
    """How much of the disk is used, in whole percent."""

    total_bytes: Annotated[int, Field(json_schema_extra={"format": "int64"})]
    """How large the disk is."""


class BrokerStatus(Observed):
    """A broker of the cluster, as it registered last."""

    id: BrokerId
    """Id of the broker."""

    state: BrokerState = BrokerState.REGISTERED
    """Registered, or Missing: not registered, although replicas are assigned to it or it was registered before. A missing
    broker without replicas leaves the list ten minutes after it has gone."""

    since: Timestamp | None = None
    """When the operator first saw the broker in this state, or in this registration."""

    removal: BrokerRemoval | None = None
    """Of a broker in spec.brokersToRemove: HoldsReplicas until it is drained; then Empty, which means that it has no
    replicas, gets none, and can be stopped for good."""

    epoch: Annotated[BrokerEpoch, Field(json_schema_extra={"format": "int64"})] | None = None
    """Epoch of the registration: another one means that the broker has restarted. Left out without ZooKeeper, where
    brokers do not tell it."""

    rack: str | None = None
    """Rack of the broker, where it says one."""

    endpoints: tuple[str, ...] = ()
    """The broker's listeners, as protocol://host:port."""

    disk: BrokerDisk | None = None
    """The fullest disk of its log directories, read once a minute; of a missing broker as it was last. Left out if the
    broker does not say it: before Kafka 3.3, or without the right to Describe the cluster."""

    failed_log_directories: tuple[str, ...] = ()
    """The log directories that the broker cannot use."""


class ClusterCounts(PartitionCounts):
    """How much there is in the cluster, and how much needs attention."""

    brokers: int = 0
    """Brokers that are registered now."""

    missing_brokers: int = 0
    """Brokers that are missing."""

    topics: int = 0
    """Topics, those being deleted included."""


class FinalizedFeature(Observed):
    """A version of a feature that the whole cluster may use."""

    name: str
    """Name of the feature."""

    max_version_level: int
    """The finalized level."""


class FeaturesStatus(Observed):
    """The finalized features (KIP-584)."""

    epoch: int
    """Rises with every change of any of them."""

    finalized: Annotated[
        tuple[FinalizedFeature, ...], Field(max_length=MAX_STATUS_ENTRIES, json_schema_extra=keyed_by("name"))
    ] = ()
    """The features that are finalized; the first 500 by name."""


class OwnerlessLimit(Observed):
    """A limit for moves (throttle) in Kafka's configurations whose PartitionReassignment is gone."""

    owner: str
    """The object that has set it, as namespace/name/uid."""

    bytes_per_second: Annotated[int, Field(json_schema_extra={"format": "int64"})]
    """Bytes a second that each broker may send, and may receive, for the replicas that it slows."""

    topics: tuple[str, ...] = ()
    """Topics whose replicas it slows; the first 20 by name."""

    since: Timestamp
    """When the operator first warned of it."""

    message: str
    """When it is removed, or why it stays."""


class KafkaClusterStatus(Status):
    """How the cluster is doing."""

    controller: ControllerStatus | None = None
    """The cluster's controller; missing while there is none."""

    brokers: Annotated[tuple[BrokerStatus, ...], Field(max_length=MAX_STATUS_ENTRIES)] = ()
    """The brokers that are registered, and those that are missing; 500 at most, missing ones before others. A broker in
    spec.brokersToRemove that is empty and stopped is not missing."""

    features: FeaturesStatus | None = None
    """The finalized features; missing where no controller has set them up, or nobody can understand them."""

    ownerless_limits: Annotated[
        tuple[OwnerlessLimit, ...], Field(max_length=MAX_OWNERLESS_LIMITS, json_schema_extra=keyed_by("owner"))
    ] = ()
    """Limits that PartitionReassignments have set and that nobody removes, because somebody took the finalizer off the
    object; only without ZooKeeper. The operator removes each one ten minutes after its warning."""

    counts: ClusterCounts | None = None
    """Brokers, topics and partitions, and how many need attention."""


def _count(name: str, field: str, description: str, *, wide: bool = False) -> Column:
    return Column(name=name, json_path=f".status.counts.{field}", type="integer", description=description, wide=wide)


class KafkaCluster(Resource[KafkaClusterSpec, KafkaClusterStatus]):
    """An Apache Kafka cluster, with ZooKeeper or without. Topics, reassignments and elections refer to it."""

    definition: ClassVar = Definition(
        kind="KafkaCluster",
        plural="kafkaclusters",
        short_name="kcl",
        columns=(
            Column(
                name="Controller",
                json_path=".status.controller.id",
                type="integer",
                description="Broker id of the controller.",
            ),
            _count("Brokers", "brokers", "Brokers that are registered now."),
            _count("Partitions", "partitions", "Partitions in all."),
            _count("Offline", "offline", "Partitions without a leader."),
            _count("UnderReplicated", "underReplicated", "Partitions with replicas that are not in sync."),
            READY,
            condition_column(ConditionType.DEGRADED),
            Column(
                name="Kind",
                json_path=".status.controller.kind",
                description="Which program is the controller.",
                wide=True,
            ),
            REASON,
            MESSAGE,
            AGE,
        ),
    )

    kind: str = "KafkaCluster"
    status: KafkaClusterStatus = Field(default_factory=KafkaClusterStatus)
