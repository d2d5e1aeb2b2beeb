"""The owner of a topic among several KafkaTopics, and the hand-over of the topic with its data to the next one.

The oldest object owns the topic. The others note the owner and its topic in their status (`status.owner`). When the
owner is deleted, whatever its policy, the topic stays, and the oldest of the others takes it over. It recognizes the
topic by its note, so an operator that was away takes it over later. A hand-over is no adoption: `adoptionPolicy` is
about topics that no object owned. From then on the spec of the new owner applies, like a changed spec.
"""

from controller_operator.plans.outcome import Verdict
from controller_operator.plans.topic.differences import Differences, describe_differences
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason
from controller_operator.resources.topic import KafkaTopic, TopicOwner


def note_owner(owner: KafkaTopic) -> TopicOwner:
    """Return the note of the other objects about the owner."""
    return TopicOwner(name=owner.metadata.full_name, topic_id=owner.status.topic_id)


def find_inherited_id(resource: KafkaTopic, rivals: tuple[str, ...]) -> str | None:
    """Return the id of the topic that the former owner has left to this object; None if there is none.

    A former owner among the `rivals` still exists. It has only lost the right to the Kafka cluster, and has left
    nothing."""
    owner = resource.status.owner
    return owner.topic_id if owner is not None and owner.name not in rivals else None


def explain_hand_over(topic: KafkaTopic, heir: KafkaTopic) -> str:
    """Return the webhook's warning about the deletion of an owner."""
    return (
        f"topic {topic.topic_name} stays with its data: {heir.metadata.full_name} takes it over. To delete the topic, "
        f"delete {heir.metadata.full_name} first"
    )


def conflict_verdict(
    resource: KafkaTopic, owner: KafkaTopic, live_id: str | None, found: Differences | None
) -> Verdict:
    """Return the verdict on an object whose topic belongs to an older one. `found`: the topic's differences from its
    spec.

    The message explains the effect of deleting either of the two."""
    topic, name = f"topic {resource.topic_name}", owner.metadata.full_name
    keep = "delete this object to keep things as they are"
    if owner.metadata.deletion_timestamp is not None:
        message = f"{topic} belongs to {name}, which is being deleted: this object has the topic when that is done"
    elif live_id is not None and owner.status.topic_id == live_id:
        changes = (
            f", which then changes what differs: {describe_differences(found.all)}"
            if found is not None and found.all
            else ""
        )
        message = (
            f"{topic} belongs to {name}, which is older: {keep}; delete {name} to hand the topic with its data over to "
            f"this object{changes}"
        )
    else:
        message = (
            f"{topic} is claimed by {name}, which is older: {keep}; delete {name} to let this object have the name"
        )
    conflict = (ConditionType.CONFLICT, ConditionStatus.TRUE, Reason.RESOURCE_CONFLICT, message)
    return Verdict(
        ready=ConditionStatus.FALSE,
        reason=Reason.RESOURCE_CONFLICT,
        message=message,
        is_stalled=True,
        others=(conflict,),
    )
