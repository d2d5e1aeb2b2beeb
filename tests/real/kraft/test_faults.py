"""Controllers and brokers that die or hang while an operator requests every kind of change, all at once.

Faults at each single request are tested without servers (`unit/operator/crashes/test_quorum_crashes.py`). Here the real
Kafka is slow to notice, keeps requests, and elects.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

from devcluster.clusters.kraft import KRaftCluster
from devcluster.filling.parts import Part
from devcluster.running.processes import wait_until
from tests.real.kraft.conftest import LOGIN
from tests.real.operator.operated import RECORD_BYTES, Objects, Operator, fill

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(400)]

_numbers = count(1)


class Changes:
    """Objects in the middle of their work, each with its own name."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._suffix = next(_numbers)

    def name(self, what: str) -> str:
        return f"{what}-{self._suffix}"

    def prepare(self, kafka: KRaftCluster) -> None:
        """Prepare the objects to change. Afterwards 1 leads a partition that prefers 2, and a slow move is in progress."""
        self._topic("grown", {"replicaAssignment": [[1, 2]]})
        self._topic("gone", {"replicaAssignment": [[1, 2]], "deletionPolicy": "Delete"})
        self._topic("moved", {"replicaAssignment": [[1, 2]], "driftPolicy": "Ignore"})
        self._topic("led", {"replicaAssignment": [[2, 1]]})
        for name in ("grown", "gone", "moved", "led"):
            self._objects.wait_ready("kafkatopic", self.name(name))
        kafka.broker(2).kill()
        wait_until(lambda: self._partition("led")["leader"] == 1, "1 leads")
        kafka.broker(2).start()
        wait_until(lambda: len(self._partition("led")["isr"]) == 2, "2 is in sync")
        self._topic("kept", {"replicaAssignment": [[1]], "driftPolicy": "Ignore"})
        self._objects.wait_ready("kafkatopic", self.name("kept"))
        fill(kafka, self.name("kept"), LOGIN)
        self._move("kept", [3], throttle={"bytesPerSecond": RECORD_BYTES})
        wait_until(lambda: self._partition("kept")["replicas"] == [3, 1], "it moves")

    def ask(self) -> int:
        """Request all changes; return the requested level of `metadata.version`."""
        self._topic("made", {"replicaAssignment": [[1, 2]]})
        self._topic("grown", {"replicaAssignment": [[1, 2], [2, 1]], "config": {"retention.ms": "9000"}})
        self._objects.delete("kafkatopic", self.name("gone"))
        self._move("moved", [3, 2])
        self._objects.delete("partitionreassignment", self.name("kept"))
        self._objects.apply("PreferredElection", self.name("led"), {"topics": [self.name("led")]})
        level = find_metadata_version(self._objects) + 1
        features = [{"name": "metadata.version", "maxVersionLevel": level}]
        self._objects.apply("FeatureSet", self.name("raised"), {"features": features})
        return level

    def wait_until_done(self, level: int) -> None:
        """Wait until all changes are done, and assert that none was done twice."""
        objects = self._objects
        objects.wait_ready("kafkatopic", self.name("made"))
        assert "TopicAdopted" not in objects.events(self.name("made"))
        grown = objects.wait_ready("kafkatopic", self.name("grown"))["status"]
        assert grown["counts"]["partitions"] == 2
        objects.wait_gone("kafkatopic", self.name("gone"))
        for kind, name in (("partitionreassignment", "moved"), ("preferredelection", "led")):
            objects.wait_for(kind, self.name(name), "Complete")
        # The status of another object follows.
        wait_until(lambda: self._partition("moved")["replicas"] == [3, 2], "its replicas are the new ones")
        objects.wait_gone("partitionreassignment", self.name("kept"))
        objects.wait_for_event(self.name("kept"), "ReassignmentCancelled")
        assert objects.events(self.name("kept")).count("ReassignmentCancelled") == 1
        wait_until(lambda: self._partition("kept")["replicas"] == [1], "its replicas are as before")
        wait_until(lambda: self._partition("led")["leader"] == 2, "2 leads")
        objects.wait_ready("featureset", self.name("raised"))
        wait_until(lambda: find_metadata_version(objects) == level, "the cluster has the level")
        objects.delete("featureset", self.name("raised"))

    def _topic(self, name: str, spec: dict[str, Any]) -> None:
        self._objects.apply("KafkaTopic", self.name(name), spec)

    def _move(self, name: str, replicas: list[int], **spec: Any) -> None:
        target = {"topic": self.name(name), "partition": 0, "replicas": replicas}
        self._objects.apply("PartitionReassignment", self.name(name), {"partitions": [target], **spec})

    def _partition(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self._objects.status("kafkatopic", self.name(name))["partitions"][0]
        return found


def find_metadata_version(objects: Objects) -> int:
    """Return the level of `metadata.version` in the KafkaCluster's status."""
    features = objects.status("kafkacluster", "demo")["features"]["finalized"]
    return int(next(each["maxVersionLevel"] for each in features if each["name"] == "metadata.version"))


def active(objects: Objects) -> int:
    return int(objects.wait_ready("kafkacluster", "demo")["status"]["controller"]["id"])


@contextmanager
def active_controller_stands_still_and_dies(kafka: KRaftCluster, objects: Objects, changes: Changes) -> Iterator[None]:
    """Pause the active controller, so that it keeps connections and unanswered requests, and kill it afterwards."""
    leader = kafka.controller(active(objects))
    leader.pause()
    yield
    made = changes.name("made")
    wait_until(lambda: bool(objects.condition("kafkatopic", made)), "it is about to be made")
    leader.kill()


@contextmanager
def most_controllers_are_away(kafka: KRaftCluster, objects: Objects, changes: Changes) -> Iterator[None]:
    """Kill the majority of controllers, check that the missing leader is reported, and start them again."""
    leader = active(objects)
    other = next(each for each in kafka.controllers if each != leader)
    for each in (leader, other):
        kafka.controller(each).kill()
    yield
    said = objects.wait_ready("kafkacluster", "demo", "False", "NoController")["status"]
    message = next(each["message"] for each in said["conditions"] if each["type"] == "Ready")
    assert message.startswith("the controllers (101, 102, 103) have no leader")
    objects.wait_ready("kafkatopic", changes.name("made"), "False")
    assert len(said["brokers"]) == 3, "brokers are still shown"


@contextmanager
def kill_asked_broker(kafka: KRaftCluster, objects: Objects, changes: Changes) -> Iterator[None]:
    """Pause the broker that got the requests, and kill it, so that they are lost."""
    kafka.broker(1).pause()
    yield
    made = changes.name("made")
    wait_until(lambda: bool(objects.condition("kafkatopic", made)), "it is about to be made")
    kafka.broker(1).kill()


Fault = Callable[[KRaftCluster, Objects, Changes], Any]


@pytest.mark.parametrize(
    "fault",
    [active_controller_stands_still_and_dies, most_controllers_are_away, kill_asked_broker],
    ids=lambda fault: fault.__name__,
)
def test_everything_that_was_asked_for_is_done_once_all_are_back(
    operator: Operator, objects: Objects, kafka: KRaftCluster, fault: Fault
) -> None:
    changes = Changes(objects)
    changes.prepare(kafka)
    with fault(kafka, objects, changes):
        level = changes.ask()
    kafka.start()
    changes.wait_until_done(level)
    assert active(objects) in kafka.controllers


def test_an_unclean_election_is_held_once_though_the_active_controller_dies_in_it(
    operator: Operator, objects: Objects, kafka: KRaftCluster
) -> None:
    def partition() -> dict[str, Any]:
        found: dict[str, Any] = objects.status("kafkatopic", "lossy")["partitions"][0]
        return found

    objects.apply("KafkaTopic", "lossy", {"replicaAssignment": [[2, 3]], "config": {"min.insync.replicas": "1"}})
    objects.wait_ready("kafkatopic", "lossy")
    leader = kafka.controller(active(objects))
    kafka.broker(3).kill()
    wait_until(lambda: partition()["isr"] == [2], "3 is out of sync")
    kafka.broker(2).kill()
    wait_until(lambda: partition()["leader"] == -1, "nobody leads it")
    kafka.broker(3).start()
    objects.wait_ready("kafkatopic", "lossy", "False", "PartitionsOffline")
    leader.pause()
    election = {"electionType": "Unclean", "acknowledgeDataLoss": True, "topics": ["lossy"]}
    objects.apply("PreferredElection", "lossy", election)
    wait_until(lambda: bool(objects.condition("preferredelection", "lossy")), "it is asked for")
    leader.kill()
    leader.start()  # broker 2 would lead at once, and nothing would be lost
    objects.wait_for("preferredelection", "lossy", "Complete")
    row = objects.status("preferredelection", "lossy")["partitions"][0]
    assert (row["result"], row["leaderBefore"], row["leaderAfter"], row["isrBefore"]) == ("Elected", -1, 3, [2])
    objects.wait_for_event("lossy", "UncleanLeaderElected")
    assert objects.events("lossy").count("UncleanLeaderElected") == 1
    kafka.start()
    objects.wait_ready("kafkatopic", "lossy")
