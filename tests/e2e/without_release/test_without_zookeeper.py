"""Kafka 4 in pods with its operator: the examples as a user applies them, and disruptions of pods under load.

Like the secured examples, it runs in its own namespace after the other release is gone.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from devcluster.filling.parts import Part
from devcluster.images import Image
from devcluster.node.pods import PodCluster
from tests.e2e.manifests import ready_condition, reassignment, topic
from tests.e2e.release import NAME, PROJECT, Release
from tests.e2e.toolbox import Load, Toolbox
from tests.e2e.without_release.instead import instead
from tests.e2e.without_release.killing import kill_pod

pytestmark = [
    pytest.mark.real(Part.KRAFT),
    pytest.mark.timeout(600),
]

NAMESPACE: Final = "kafka-4"
EXAMPLES: Final = PROJECT / "examples"
FOLDER: Final = EXAMPLES / "without-zookeeper"
VALUES: Final = EXAMPLES / "helm" / "without-zookeeper-values.yaml"
LOGIN_VALUES: Final = EXAMPLES / "helm" / "without-zookeeper-login-values.yaml"
BOOTSTRAP: Final = "kafka:9092"
PLAINTEXT: Final = "bootstrap.servers=kafka-0.kafka:9092,kafka-1.kafka:9092\nsecurity.protocol=PLAINTEXT\n"


@pytest.fixture(scope="module")
def release(pods: PodCluster) -> Iterator[Release]:
    """The operator alone, beside the brokers and controllers of the example."""
    pods.load(Image.KAFKA_4)
    release = instead(pods, NAMESPACE, str(VALUES), "--values", str(LOGIN_VALUES))
    try:
        release.apply(*example(FOLDER / "kafka-4-pods.yaml", images=pods.images), login())
        with release:
            release.kubectl("rollout", "status", "statefulset/kafka", "--timeout=5m")
            yield release
    finally:
        # Brokers that shut down gracefully wait for others.
        release.kubectl("delete", "statefulsets", "--all", "--cascade=orphan")
        release.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
        pods.kubernetes.kubectl("delete", "namespace", NAMESPACE, "--timeout=180s")


@pytest.fixture(scope="module")
def toolbox(pods: PodCluster, release: Release) -> Iterator[Toolbox]:
    """Kafka's own tools, of the release before: they can talk to both."""
    with Toolbox(pods, release, BOOTSTRAP) as box:
        yield box


@pytest.fixture(scope="module")
def load(release: Release, toolbox: Toolbox) -> Load:
    """A producer with acks=all that runs over all disruptions. No other test uses its topic."""
    release.apply(topic("numbers", [[1, 2, 3], [2, 3, 1], [3, 1, 2]], **{"min.insync.replicas": "2"}))
    release.wait_ready("kafkatopic", "numbers")
    return toolbox.start_load("numbers")


def example(file: Path, *, images: str = "") -> list[dict[str, Any]]:
    """Return the objects of an example, for this namespace, with the images of this cluster."""
    text = file.read_text().replace("namespace: kafka\n", f"namespace: {NAMESPACE}\n")
    return list(yaml.safe_load_all(text.replace("image: kontroller", f"image: {images}kontroller")))


def login() -> dict[str, Any]:
    """Return the Secret that the values name, for brokers without login."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "kafka-client"},
        "stringData": {"server.properties": PLAINTEXT},
    }


def pod_uid(release: Release, pod: str) -> str:
    """Return the uid of the pod with this name, which a new pod does not share; empty if there is none."""
    found = release.get("pods", f"--field-selector=metadata.name={pod}")["items"]
    return str(found[0]["metadata"]["uid"]) if found else ""


def wait_until_replaced(release: Release, pod: str, before: str) -> None:
    release.wait_for(lambda: pod_uid(release, pod) not in ("", before), f"there is another pod {pod}")
    release.kubectl("wait", "--for=condition=Ready", f"pod/{pod}", "--timeout=180s")


def restarts(release: Release, pod: str) -> int:
    (container,) = release.get("pod", pod)["status"]["containerStatuses"]
    return int(container["restartCount"])


def topics(toolbox: Toolbox) -> dict[str, str]:
    """Return the replicas of each partition according to Kafka's own tool."""
    said = toolbox.run("kafka-topics.sh", "--bootstrap-server", BOOTSTRAP, "--describe", "--exclude-internal")
    lines = (line.split("\t") for line in said.splitlines() if "\tPartition: " in line)
    return {f"{fields[1]} {fields[2]}": fields[4] for fields in lines}


def test_the_examples_are_ready(release: Release) -> None:
    release.apply(*example(FOLDER / "cluster.yaml"), *example(EXAMPLES / "topics.yaml"))
    status = release.wait_ready("kafkacluster", "demo")
    assert status["controller"]["kind"] == "KRaft"
    assert status["counts"]["brokers"] == 3
    for name in ("orders", "audit-log"):
        release.wait_ready("kafkatopic", name)
    (move,) = example(EXAMPLES / "reassignment.yaml")
    for target in move["spec"]["partitions"]:
        target["replicas"] = [broker - 3 for broker in reversed(target["replicas"])]
    release.apply(*example(FOLDER / "features.yaml"), move)
    moved = release.wait_ready("partitionreassignment", move["metadata"]["name"])
    assert [each["replicas"] for each in moved["partitions"]] == [[3, 2, 1], [1, 3, 2], [2, 1, 3]]
    # Nothing is upgraded: one of Kafka's controllers may start unregistered, and stays so until it is restarted.
    release.wait_for(lambda: ready_condition(release, "featureset", "features")["reason"] == "DryRun", "it was asked")


def test_the_chart_s_own_tests_ask_the_quorum(release: Release) -> None:
    said = release.run_tests()
    assert f"{NAME}-test-cluster" in said
    assert "Failed" not in said


def test_a_deleted_broker_s_pod_drains_and_comes_back_into_all_its_isrs(
    release: Release, toolbox: Toolbox, load: Load
) -> None:
    before = pod_uid(release, "kafka-1")
    release.kubectl("delete", "pod", "kafka-1")
    wait_until_replaced(release, "kafka-1", before)
    assert "FailedPreStopHook" not in release.kubectl("get", "events")
    release.wait_for(lambda: release.status("kafkacluster", "demo")["counts"]["underReplicated"] == 0, "all is in sync")
    toolbox.wait_for_progress(load)


def test_another_leads_the_quorum_when_the_active_controller_s_pod_is_deleted(
    release: Release, toolbox: Toolbox, load: Load
) -> None:
    def leader() -> int:
        return int(release.status("kafkacluster", "demo")["controller"]["id"])

    former = leader()
    pod = f"kafka-controller-{former - 101}"
    before = pod_uid(release, pod)
    release.kubectl("delete", "pod", pod, "--grace-period=0", "--force")
    release.apply(topic("made-meanwhile", [[1, 2]]))
    release.wait_for(lambda: leader() != former, "another one leads")
    release.wait_ready("kafkatopic", "made-meanwhile")
    wait_until_replaced(release, pod, before)
    toolbox.wait_for_progress(load)


def test_a_move_goes_on_when_the_operator_is_killed(
    pods: PodCluster, release: Release, toolbox: Toolbox, load: Load
) -> None:
    release.apply(topic("heavy", [[1, 2]]))
    release.wait_ready("kafkatopic", "heavy")
    toolbox.fill("heavy", megabytes=20)
    move = reassignment("move-heavy", "heavy", [[3, 2]])
    move["spec"]["throttle"] = {"bytesPerSecond": 500_000}
    release.apply(move)
    release.wait_for(
        lambda: release.status("partitionreassignment", "move-heavy").get("phase") == "Running", "it moves"
    )
    pod = release.get("lease", f"{NAME}-operator")["spec"]["holderIdentity"].partition("_")[0]
    before = restarts(release, pod)
    with kill_pod(pods, release, pod):
        release.wait_for(lambda: restarts(release, pod) > before, "the operator was killed")
    move["spec"]["throttle"] = {"bytesPerSecond": 100_000_000}
    release.apply(move)
    ended = release.wait_ready("partitionreassignment", "move-heavy")
    assert [each["replicas"] for each in ended["partitions"]] == [[3, 2]]
    toolbox.wait_for_progress(load)


def test_an_uninstall_leaves_topics_as_they_are_and_nothing_was_lost(
    release: Release, toolbox: Toolbox, load: Load
) -> None:
    before = topics(toolbox)
    assert before["Topic: heavy Partition: 0"] == "Replicas: 3,2"
    release.uninstall()
    assert load.find_lost() == set()
    assert topics(toolbox) == before
    release.kubectl("delete", "kontroller", "--all", "--timeout=60s")
    assert topics(toolbox) == before
