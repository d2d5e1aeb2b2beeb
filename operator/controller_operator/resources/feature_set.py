"""FeatureSet: which versions of features the whole cluster may use."""

from typing import Annotated, ClassVar, Final

from pydantic import Field

from controller_core.model.ids import BrokerId
from controller_operator.resources.common import (
    AGE,
    CLUSTER,
    MESSAGE,
    READY,
    REASON,
    Column,
    Definition,
    DeletionPolicy,
    DriftCorrections,
    OwnCluster,
    Resource,
    Spec,
    Status,
)
from controller_operator.resources.schema import MAX_STATUS_ENTRIES, Model, Observed, Rule, keyed_by, rules

MAX_FEATURES: Final = 100
MAX_LEVEL: Final = 32_767
"""A level is an int16 in Kafka's protocol."""


class Feature(Model):
    """A feature, and the version of it that the cluster is to use."""

    name: str = Field(
        min_length=1,
        max_length=249,
        json_schema_extra=rules(
            Rule(r"self.matches(r'^[\w.-]+$')", "a feature name has only the characters a-z A-Z 0-9 . _ -")
        ),
    )
    """Name of the feature, as brokers register it."""

    max_version_level: int = Field(ge=1, le=MAX_LEVEL)
    """The version level to finalize: the highest one that brokers and clients then use."""


class FeatureSetSpec(Spec):
    """The features as they should be. Features that are not named are left as they are."""

    cluster_ref: OwnCluster
    """The cluster whose features these are. Cannot change."""

    features: Annotated[
        tuple[Feature, ...], Field(min_length=1, max_length=MAX_FEATURES, json_schema_extra=keyed_by("name"))
    ]
    """The features, each named once. A feature that is taken out of the list stays finalized as it is."""

    allow_downgrade: bool = False
    """Whether a finalized level may be lowered. Kafka lowers a level only where brokers say that nothing is lost, and
    newer clients may rely on the present one."""

    deletion_policy: DeletionPolicy = DeletionPolicy.RETAIN
    """What becomes of the finalized levels when this object is deleted. Retain leaves them; Delete deletes those of the
    features named here, so that the cluster uses the features no more."""

    dry_run: bool = False
    """Shows in the status what would be changed, and changes nothing."""


class SupportedVersions(Observed):
    """The versions of a feature that every live broker supports."""

    min_version: int
    """The lowest one."""

    max_version: int
    """The highest one."""


class FeatureStatus(Observed):
    """A feature of the spec, and what the cluster says of it."""

    name: str
    """Name of the feature."""

    max_version_level: int
    """The level that the spec asks for."""

    finalized_level: int | None = None
    """The finalized level; missing where the feature is not finalized."""

    supported: SupportedVersions | None = None
    """What every live broker supports; missing where there is no version that all of them do."""

    blocked_by: Annotated[tuple[BrokerId, ...], Field(max_length=MAX_STATUS_ENTRIES)] = ()
    """The live brokers that do not support the level that the spec asks for; at most 500."""

    message: str | None = Field(default=None, max_length=1024)
    """What is in the way, or what would be changed."""


class FeatureSetStatus(Status):
    """How far the features are as the spec says."""

    finalized: str | None = Field(default=None, max_length=1024)
    """The finalized levels of the features in the spec, in short: the first few of them as NAME=LEVEL."""

    epoch: int | None = None
    """Epoch of the cluster's finalized features: rises with every change of any of them."""

    features: Annotated[
        tuple[FeatureStatus, ...], Field(max_length=MAX_FEATURES, json_schema_extra=keyed_by("name"))
    ] = ()
    """Each feature of the spec."""

    corrections: DriftCorrections | None = None
    """How often the features were put right after somebody else had changed them."""


class FeatureSet(Resource[FeatureSetSpec, FeatureSetStatus]):
    """Finalized feature levels (KIP-584) of a Kafka cluster."""

    definition: ClassVar = Definition(
        kind="FeatureSet",
        plural="featuresets",
        short_name="kfs",
        columns=(
            CLUSTER,
            Column(name="Finalized", json_path=".status.finalized", description="The finalized levels."),
            Column(
                name="Epoch",
                json_path=".status.epoch",
                type="integer",
                description="Epoch of the cluster's finalized features.",
            ),
            READY,
            REASON,
            MESSAGE,
            AGE,
        ),
    )

    kind: str = "FeatureSet"
    status: FeatureSetStatus = Field(default_factory=FeatureSetStatus)
