"""The object that a topic belongs to: adoption, rival claims, pauses, recreated topics."""

from itertools import count

import pytest

from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import serve_topic
from tests.real.operator.kinds.clusters import MARKS, topic_spec
from tests.real.operator.operated import NAMESPACE, Objects, Operator
from tests.real.operator.witnesses import Witness

pytestmark = MARKS

_numbers = count(1)


@pytest.mark.parametrize(
    ("policy", "partitions", "is_adopted"),
    [("IfEqual", 2, True), ("IfEqual", 4, False), ("Never", 2, False), ("Always", 4, True)],
)
def test_an_existing_topic_is_adopted_as_the_policy_says(
    operator: Operator,
    objects: Objects,
    witness: Witness,
    topic: str,
    policy: str,
    partitions: int,
    is_adopted: bool,
) -> None:
    serve_topic(witness, topic, [[1, 2], [2, 3]])
    objects.apply("KafkaTopic", topic, topic_spec(partitions=partitions, adoptionPolicy=policy))
    if is_adopted:
        objects.wait_ready("kafkatopic", topic)
        assert witness.is_served(topic, range(partitions))
        objects.wait_for_event(topic, "TopicAdopted")
    else:
        objects.wait_ready("kafkatopic", topic, "False", "NotAdopted")
        assert objects.condition("kafkatopic", topic, "Stalled")["status"] == "True"
        assert len(witness.partitions(topic)) == 2


def test_the_older_of_two_claims_wins_and_the_other_takes_over_when_it_goes(
    operator: Operator, objects: Objects, topic: str
) -> None:
    objects.apply("KafkaTopic", f"{topic}-z", topic_spec(topicName=topic))
    objects.wait_ready("kafkatopic", f"{topic}-z")
    wait_until(lambda: _seconds_have_passed(objects, topic), "the second object is younger")
    objects.apply("KafkaTopic", f"{topic}-a", topic_spec(topicName=topic))
    objects.wait_ready("kafkatopic", f"{topic}-a", "False", "ResourceConflict")
    assert f"{NAMESPACE}/{topic}-z" in objects.condition("kafkatopic", f"{topic}-a", "Conflict")["message"]

    objects.delete("kafkatopic", f"{topic}-z")
    objects.wait_ready("kafkatopic", f"{topic}-a")
    assert objects.condition("kafkatopic", f"{topic}-a", "Conflict") == {}


def test_a_paused_object_changes_nothing_and_its_deletion_leaves_the_topic(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    objects.apply("KafkaTopic", topic, topic_spec(deletionPolicy="Delete"))
    objects.wait_ready("kafkatopic", topic)
    objects.annotate("kafkatopic", topic, "kontroller.dev/pause=true")
    wait_until(lambda: bool(objects.condition("kafkatopic", topic, "Paused")), "the object is paused")
    objects.apply("KafkaTopic", topic, topic_spec(partitions=4, deletionPolicy="Delete"))
    wait_until(
        lambda: objects.status("kafkatopic", topic).get("plan", {}).get("total") == 1, "the plan shows what waits"
    )
    objects.delete("kafkatopic", topic)
    objects.wait_gone("kafkatopic", topic)
    assert witness.is_served(topic, range(3))
    assert len(witness.partitions(topic)) == 3


def test_a_recreated_topic_is_never_deleted_for_its_predecessor(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    objects.apply("KafkaTopic", topic, topic_spec(deletionPolicy="Delete", adoptionPolicy="Never"))
    objects.wait_ready("kafkatopic", topic)
    operator.process.stop()
    witness.delete_topic(topic)
    witness.create_topic(topic, [[1, 2]])
    operator.start()
    objects.wait_ready("kafkatopic", topic, "False", "NotAdopted")
    objects.wait_for_event(topic, "TopicRecreated")
    objects.delete("kafkatopic", topic)
    objects.wait_gone("kafkatopic", topic)
    assert witness.topic_id(topic) is not None


def _seconds_have_passed(objects: Objects, topic: str) -> bool:
    """Return True once the API server's clock shows another second, because creation timestamps have whole seconds."""
    probe = f"{topic}-probe-{next(_numbers)}"
    objects.apply("PreferredElection", probe, {"topics": ["none"]})
    first = (objects.get("kafkatopic", f"{topic}-z") or {})["metadata"]["creationTimestamp"]
    created = (objects.get("preferredelection", probe) or {})["metadata"]["creationTimestamp"]
    objects.delete("preferredelection", probe)
    return bool(created > first)
