"""The rights of a namespace on a Kafka cluster, all in one place.

A KafkaCluster may limit a namespace to topics whose names begin with a prefix. Then no object of the namespace may be
about another topic or the whole cluster. An object is checked before it gets the cluster, so its status reveals nothing
about foreign topics. Every step of a plan is checked again before anything is written, by the step itself. So no step
reaches beyond the prefix, whatever field the plan took its topics from. A kind or step that is missing here fails the
type check.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

from controller_core.model.wording import list_some
from controller_operator.kafka.actions import (
    AddPartitions,
    AlterTopicConfig,
    CreateTopic,
    MarkTopicForDeletion,
    SubmitPreferredElection,
    SubmitReassignment,
)
from controller_operator.kafka.requests.cancellations import CancelReassignment
from controller_operator.kafka.requests.elections import ElectUnclean
from controller_operator.kafka.requests.features import UpdateFeatures
from controller_operator.kafka.requests.placements import PlaceReplicas, ReturnReplicas
from controller_operator.kafka.requests.topics import MissTopic
from controller_operator.kafka.throttle_steps import RemoveThrottle, SetThrottle
from controller_operator.kubernetes.object_store import AnyResource
from controller_operator.plans.consent.budget import Allowance
from controller_operator.plans.outcome import CancelMove, ForgetMove, LimitMove, StartMove, Step, Verdict
from controller_operator.resources import (
    FeatureSet,
    KafkaCluster,
    KafkaTopic,
    PartitionReassignment,
    PreferredElection,
    RebalancePlan,
)
from controller_operator.resources.conditions import Reason


@dataclass(frozen=True, slots=True)
class WholeCluster:
    """A matter that concerns all users of the cluster."""

    what: str
    """The remedy, in words."""


Reach = Iterable[str] | WholeCluster
"""The subject of an object or a step: the names of topics, or the whole cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """The rights of a namespace on a cluster."""

    namespace: str
    prefixes: tuple[str, ...] = ()
    """Required prefixes of every topic's name, all of them; empty: nothing is forbidden."""
    allowances: tuple[Allowance, ...] = ()
    """The budgets of the namespace, all of them."""

    def refuse(self, resource: AnyResource) -> Verdict | None:
        """Return why an object gets nothing of the cluster; None if it may have what it names."""
        return self._refuse(find_reach(resource)) if self.prefixes else None

    def refuse_steps(self, steps: Sequence[Step]) -> Verdict | None:
        """Return why the steps must not be carried out; None if all of them may be."""
        if not self.prefixes:
            return None
        return next((refusal for step in steps if (refusal := self._refuse(find_reach_of_step(step)))), None)

    def _refuse(self, reach: Reach) -> Verdict | None:
        must = " and ".join(self.prefixes)
        if isinstance(reach, WholeCluster):
            message = f"namespace {self.namespace} may only have topics whose names begin with {must}: {reach.what}"
            return Verdict.make_stalled(Reason.TOPIC_PREFIX_REQUIRED, message)
        foreign = sorted({topic for topic in reach if not all(map(topic.startswith, self.prefixes))})
        if not foreign:
            return None
        message = (
            f"topics of namespace {self.namespace} must have names that begin with {must}, unlike {list_some(foreign)}"
        )
        return Verdict.make_stalled(Reason.TOPIC_PREFIX_REQUIRED, message)


def find_reach(resource: AnyResource) -> Reach:
    """Return the subject of an object, by its spec."""
    match resource:
        case KafkaCluster():
            return ()
        case KafkaTopic():
            return (resource.topic_name,)
        case PartitionReassignment():
            if resource.spec.partitions is not None:
                return {each.topic for each in resource.spec.partitions}
            return WholeCluster("name the partitions to move instead of drainBrokers")
        case PreferredElection():
            if resource.spec.partitions is not None:
                return {each.topic for each in resource.spec.partitions}
            if resource.spec.topics is not None:
                return resource.spec.topics
            return WholeCluster("name the topics or partitions of the election instead of allPartitions")
        case FeatureSet():
            return WholeCluster("features are the whole cluster's")
        case RebalancePlan():
            return WholeCluster("a RebalancePlan balances the whole cluster: move named partitions instead")
        case _:
            assert_never(resource)


def find_reach_of_step(step: Step) -> Reach:
    """Return the subject of a step's changes."""
    match step:
        case CreateTopic() | AddPartitions() | AlterTopicConfig() | MarkTopicForDeletion() | MissTopic():
            return (step.topic,)
        case SubmitReassignment() | SubmitPreferredElection() | CancelReassignment() | ElectUnclean():
            return {each.topic for each in step.partitions}
        case PlaceReplicas() | ReturnReplicas():
            return {each.topic for each in step.partitions}
        case StartMove():
            return {each.topic for each, _ in step.partitions}
        case SetThrottle():
            return {each.topic for each in step.moves}
        case ForgetMove() | CancelMove() | LimitMove() | RemoveThrottle():
            return ()
        case UpdateFeatures():
            return WholeCluster("features are the whole cluster's")
        case _:
            assert_never(step)
