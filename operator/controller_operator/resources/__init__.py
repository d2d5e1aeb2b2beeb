"""The custom resources of `kontroller.dev/v1alpha1`, as models.

They are the only description of a resource. `crds` makes the CustomResourceDefinitions from them, for the folder crds/
and for the chart. The handlers read objects and write statuses through them.
"""

from typing import Any

from controller_operator.resources.cluster import KafkaCluster
from controller_operator.resources.common import Resource
from controller_operator.resources.election import PreferredElection
from controller_operator.resources.feature_set import FeatureSet
from controller_operator.resources.reassignment import PartitionReassignment
from controller_operator.resources.rebalancing.rebalance_plan import RebalancePlan
from controller_operator.resources.topic import KafkaTopic

KINDS: tuple[type[Resource[Any, Any]], ...] = (
    KafkaCluster,
    KafkaTopic,
    PartitionReassignment,
    PreferredElection,
    FeatureSet,
    RebalancePlan,
)

__all__ = [
    "KINDS",
    "FeatureSet",
    "KafkaCluster",
    "KafkaTopic",
    "PartitionReassignment",
    "PreferredElection",
    "RebalancePlan",
]
