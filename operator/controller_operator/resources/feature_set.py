"""FeatureSet: the versions of features that the whole cluster may use."""

from typing import Annotated, ClassVar, Final

from pydantic import Field

from controller_core.model.ids import BrokerId
from controller_operator.resources.common import (
    CLUSTER,
    STANDING,
    Definition,
    DeletionPolicy,
    DriftCorrections,
    OwnCluster,
    Resource,
    Spec,
    Status,
    number_column,
    text_column,
)
from controller_operator.resources.schema import MAX_STATUS_ENTRIES, Model, Observed, Rule, key_by, rules

MAX_FEATURES: Final = 100
MAX_LEVEL: Final = 32_767
"""A level is an int16 in Kafka's protocol."""


class Feature(Model):
    """A feature, and the desired level of it."""

    name: str = Field(
        min_length=1,
        max_length=249,
        json_schema_extra=rules(
            Rule(r"self.matches(r'^[\w.-]+$')", "a feature name has only the characters a-z A-Z 0-9 . _ -")
        ),
    )
    """Name of the feature, as brokers register it."""

    max_version_level: int = Field(ge=1, le=MAX_LEVEL)
    """The level to finalize."""


class FeatureSetSpec(Spec):
    """The desired features. Features that are not named stay as they are."""

    cluster_ref: OwnCluster
    """The cluster of the features. Cannot change."""

    features: Annotated[
        tuple[Feature, ...], Field(min_length=1, max_length=MAX_FEATURES, json_schema_extra=key_by("name"))
    ]
    """The features. One that is removed from the list stays finalized at its level."""

    allow_downgrade: bool = False
    """If true, a finalized level may be lowered, if Kafka agrees. Newer clients may rely on the current one."""

    deletion_policy: DeletionPolicy = DeletionPolicy.RETAIN
    """When this object is deleted: Retain leaves the finalized levels; Delete deletes those of the features named
    here."""

    dry_run: bool = False
    """If true, the status shows the changes, and nothing is changed."""


class SupportedVersions(Observed):
    """The versions of a feature that every live broker supports."""

    min_version: int
    """The lowest version."""

    max_version: int
    """The highest version."""


class FeatureStatus(Observed):
    """A feature of the spec, and its state in the cluster."""

    name: str
    """Name of the feature."""

    max_version_level: int
    """The level that the spec asks for."""

    finalized_level: int | None = None
    """The finalized level, if there is one."""

    supported: SupportedVersions | None = None
    """The versions that every live broker supports, if there are any."""

    blocked_by: Annotated[tuple[BrokerId, ...], Field(max_length=MAX_STATUS_ENTRIES)] = ()
    """The live brokers that do not support the level."""

    message: str | None = Field(default=None, max_length=1024)
    """The obstacle, or the pending change."""


class FeatureSetStatus(Status):
    """The state of the features in the cluster."""

    finalized: str | None = Field(default=None, max_length=1024)
    """The finalized levels of the first features, as NAME=LEVEL."""

    epoch: int | None = None
    """Epoch of the cluster's features. It rises with every change."""

    features: Annotated[
        tuple[FeatureStatus, ...], Field(max_length=MAX_FEATURES, json_schema_extra=key_by("name"))
    ] = ()
    """Each feature of the spec."""

    corrections: DriftCorrections | None = None
    """Corrections of changes made elsewhere."""


class FeatureSet(Resource[FeatureSetSpec, FeatureSetStatus]):
    """Finalized feature levels (KIP-584) of a Kafka cluster."""

    definition: ClassVar = Definition(
        kind="FeatureSet",
        plural="featuresets",
        short_name="kfs",
        columns=(
            CLUSTER,
            text_column("Finalized", "finalized", "The finalized levels."),
            number_column("Epoch", "epoch", "Epoch of the cluster's finalized features."),
            *STANDING,
        ),
    )

    kind: str = "FeatureSet"
    status: FeatureSetStatus = Field(default_factory=FeatureSetStatus)
