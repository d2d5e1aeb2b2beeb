"""Topic rules over KafkaTopics. They are asked about changes alone, so a topic that breaks a later rule stays."""

from collections.abc import Mapping

from controller_core.model.snapshot import TopicSnapshot
from controller_core.model.topics.topic_changes import ChangeKind, TopicChange, TopicRules, TopicShape
from controller_operator.plans.outcome import Verdict
from controller_operator.resources import KafkaTopic
from controller_operator.resources.conditions import Reason


def refuse_creation(resource: KafkaTopic, rules: TopicRules) -> Verdict | None:
    """Return why the topic must not be created; None if it may be."""
    spec = resource.spec
    topic = TopicShape(
        name=resource.topic_name,
        partitions=spec.partition_count,
        replication_factor=spec.replica_count,
        configs=spec.config or {},
        replicas=spec.replica_assignment or (),
    )
    return _refuse(resource, topic, None, rules)


def refuse_change(
    resource: KafkaTopic,
    before: TopicSnapshot,
    configs: Mapping[str, str],
    rules: TopicRules,
    *,
    is_grown: bool,
    is_moved: bool,
) -> Verdict | None:
    """Return why the topic must not be changed; None if it may be. `configs`: its configuration after the change.

    `is_grown`: it gets the spec's partitions; `is_moved`: it gets the spec's replicas."""
    spec = resource.spec
    old = TopicShape(
        name=before.name,
        partitions=len(before.partitions),
        replication_factor=min((len(each.target) for each in before.partitions.values()), default=0),
        configs=before.config,
    )
    topic = TopicShape(
        name=before.name,
        partitions=spec.partition_count if is_grown else old.partitions,
        replication_factor=spec.replica_count if is_moved else old.replication_factor,
        configs=configs,
        replicas=(spec.replica_assignment or ()) if is_grown or is_moved else (),
    )
    return _refuse(resource, topic, old, rules)


def _refuse(resource: KafkaTopic, topic: TopicShape, old: TopicShape | None, rules: TopicRules) -> Verdict | None:
    change = TopicChange(kind=ChangeKind.KAFKA_TOPIC, topic=topic, old=old, namespace=resource.metadata.namespace)
    objection = rules.find_objection(change)
    if objection is None:
        return None
    message = f"a rule for topics refuses this: {objection.message}"
    return Verdict.make_stalled(Reason.POLICY_VIOLATION, message)
