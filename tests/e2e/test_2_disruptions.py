"""Disruptions of pods under load: no acknowledged message is lost, and partitions stay online if they can."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from devcluster.clusters.kubernetes import CommandError
from tests.e2e.manifests import make_emptying, reassignment, topic
from tests.e2e.release import BROKERS as BROKER_IDS
from tests.e2e.release import KAFKA, NAME, PROJECT, Release
from tests.e2e.toolbox import Load, Toolbox

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

BROKERS = "app.kubernetes.io/component=kafka"
CONTROLLERS = "app.kubernetes.io/component=controller"
OPERATORS = "app.kubernetes.io/component=operator"
ZOOKEEPER_POD = f"{NAME}-zookeeper-0"
ALL_REPLICAS = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
ADDED = 4
ADDED_POD = f"{NAME}-kafka-{ADDED - 1}"
SCALE_DOWN_CHECK = f"job/{NAME}-drain-brokers-first"


@pytest.fixture
def load(release: Release, toolbox: Toolbox, request: pytest.FixtureRequest) -> Iterator[Load]:
    """A producer with acks=all on the test's own topic, which needs two replicas in sync."""
    name = request.node.name.removeprefix("test_").replace("_", "-")[:60].strip("-")
    release.apply(topic(name, ALL_REPLICAS, **{"min.insync.replicas": "2"}))
    release.wait_ready("kafkatopic", name)
    release.wait_healthy()
    yield toolbox.start_load(name)
    release.kubectl("delete", "kafkatopic", name, "--wait=false")


def uids(release: Release, selector: str) -> dict[str, str]:
    """Return the pods that a selector finds, each with its uid, which another pod of the same name does not have."""
    pods = release.get("pods", "--selector", selector)["items"]
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}


def restarts(release: Release, pod: str) -> int:
    """Return the number of restarts of the container in a broker's pod."""
    (container,) = release.get("pod", pod)["status"]["containerStatuses"]
    return int(container["restartCount"])


def delete_and_wait(release: Release, pod: str) -> None:
    """Delete a broker's pod, and wait until another one with its name is healthy.

    For a moment, the status of all brokers together is still the old one.
    """
    before = uids(release, BROKERS)[pod]
    release.kubectl("delete", "pod", pod)
    release.wait_for(lambda: uids(release, BROKERS).get(pod, before) != before, f"there is another pod {pod}")
    release.kubectl("wait", "--for=condition=Ready", f"pod/{pod}", "--timeout=300s")
    release.wait_healthy()


def test_a_rolling_restart_never_has_an_offline_partition(release: Release, toolbox: Toolbox, load: Load) -> None:
    before = uids(release, BROKERS)
    with toolbox.watch_for_offline() as watch:
        release.kubectl("rollout", "restart", KAFKA)
        release.wait_healthy()
    release.wait_for_preferred_leaders(load.topic)
    after = uids(release, BROKERS)
    assert before.keys() == after.keys()
    assert not set(before.values()) & set(after.values())
    assert watch.partitions() == []
    assert load.find_lost() == set()
    assert load.list_errors() == []
    assert load.list_timeouts() == [], "leaderships came to a broker at an address that clients did not know"
    # Every pod drained itself: the kubelet reports a failed hook.
    assert "FailedPreStopHook" not in release.kubectl("get", "events")


def test_a_deleted_broker_pod_comes_back_into_all_its_isrs(release: Release, toolbox: Toolbox, load: Load) -> None:
    with toolbox.watch_for_offline() as watch:
        delete_and_wait(release, f"{NAME}-kafka-1")
    assert watch.partitions() == []
    toolbox.wait_for_progress(load)
    assert load.find_lost() == set()


def test_a_broker_killed_at_once_costs_nothing_that_was_acknowledged(
    release: Release, toolbox: Toolbox, load: Load
) -> None:
    pod = f"{NAME}-kafka-0"
    before = restarts(release, pod)
    with toolbox.watch_for_offline() as watch:
        # A pod that is deleted by force still gets a moment, in which it may drain itself. A signal that means a fault
        # of the virtual machine itself ends it at once.
        release.kubectl("exec", pod, "--", "sh", "-c", "kill -s SEGV 1")
        release.wait_for(lambda: restarts(release, pod) > before, "the broker has crashed")
        release.kubectl("wait", "--for=condition=Ready", f"pod/{pod}", "--timeout=300s")
        release.wait_healthy()
    assert watch.partitions(), "a leader that dies at once is away until its session has ended"
    toolbox.wait_for_progress(load)
    assert load.find_lost() == set()


def test_a_drained_node_lets_one_broker_go_after_the_other(release: Release, toolbox: Toolbox, load: Load) -> None:
    before = uids(release, BROKERS)
    node = release.get("nodes")["items"][0]["metadata"]["name"]
    with toolbox.watch_for_offline() as watch, ThreadPoolExecutor() as beside:
        drain = ("drain", node, f"--pod-selector={BROKERS}", "--delete-emptydir-data", "--timeout=600s")
        draining = beside.submit(release.kubernetes.kubectl, *drain)
        # The evicted pods have nowhere else to go here, so the node takes them back while it is being drained.
        release.wait_for(lambda: uids(release, BROKERS) != before, "the first broker was evicted", silence_s=300)
        release.kubernetes.kubectl("uncordon", node)
        draining.result()
    release.wait_healthy()
    assert not set(before.values()) & set(uids(release, BROKERS).values())
    assert watch.partitions() == []
    assert load.find_lost() == set()


def test_the_standby_takes_over_when_the_controller_s_pod_is_killed(
    release: Release, toolbox: Toolbox, load: Load
) -> None:
    epoch = release.controller_epoch()
    held_by = release.status("kafkacluster", "demo")["controller"]["id"]
    (pod,) = (name for name in uids(release, CONTROLLERS) if name.endswith(f"-{1000 - held_by}"))
    release.kubectl("delete", "pod", pod, "--grace-period=0", "--force")
    release.wait_for(lambda: release.controller_epoch() > epoch, "there is another controller")
    release.wait_for(lambda: has_our_controller(release), "one of our controllers has the role")
    toolbox.wait_for_progress(load)
    release.apply(topic("made-after-failover", [[1, 2]]))
    release.wait_ready("kafkatopic", "made-after-failover")
    assert load.find_lost() == set()


def test_a_killed_operator_goes_on_where_it_was(release: Release, load: Load) -> None:
    release.apply(topic("made-by-the-next-operator", [[1, 2]]))
    for pod in uids(release, OPERATORS):
        release.kubectl("delete", "pod", pod, "--grace-period=0", "--force")
    release.wait_ready("kafkatopic", "made-by-the-next-operator")
    assert load.find_lost() == set()


def test_zookeeper_s_pod_comes_back_with_its_data(release: Release, toolbox: Toolbox, load: Load) -> None:
    release.kubectl("delete", "pod", ZOOKEEPER_POD)
    release.kubectl("wait", "--for=condition=Ready", f"pod/{ZOOKEEPER_POD}", "--timeout=120s")
    release.wait_healthy()
    toolbox.wait_for_progress(load)
    release.apply(topic("made-after-zookeeper", [[1, 2]]))
    release.wait_ready("kafkatopic", "made-after-zookeeper")
    assert load.find_lost() == set()


def test_an_upgrade_while_a_reassignment_runs_lets_both_end_well(
    release: Release, toolbox: Toolbox, load: Load
) -> None:
    release.apply(topic("heavy", [[1, 2]]))
    release.wait_ready("kafkatopic", "heavy")
    toolbox.fill("heavy", megabytes=40)
    toolbox.throttle("heavy", bytes_per_second=100_000)  # so that the move outlasts the upgrade
    release.apply(reassignment("move-heavy", "heavy", [[3, 2]]))
    release.wait_for(lambda: phase(release, "move-heavy") == "Running", "the reassignment runs")
    release.upgrade("--set", "operator.podAnnotations.changed=yes,controller.podAnnotations.changed=yes")
    assert phase(release, "move-heavy") == "Running"
    toolbox.unthrottle("heavy")
    ended = release.wait_ready("partitionreassignment", "move-heavy")
    assert [partition["replicas"] for partition in ended["partitions"]] == [[3, 2]]
    assert load.find_lost() == set()


def test_a_broker_that_holds_replicas_is_kept_until_it_is_drained(release: Release) -> None:
    release.kubectl("apply", "--server-side", "-f", str(PROJECT / "examples" / "cluster.yaml"))
    release.upgrade("--set", f"kafka.replicas={ADDED}")
    release.wait_for(lambda: brokers(release) == [*BROKER_IDS, ADDED], "the added broker is registered")
    release.apply(topic("on-the-added-broker", [[ADDED, 1]]))
    release.wait_ready("kafkatopic", "on-the-added-broker")
    uid = release.get("pod", ADDED_POD)["metadata"]["uid"]

    with pytest.raises(CommandError, match="drain-brokers-first"):
        release.upgrade()
    said = release.kubectl("logs", SCALE_DOWN_CHECK)
    assert f"broker {ADDED} still has replicas of 1 partition" in said
    assert f"drainBrokers: [{ADDED}]" in said
    assert release.get(KAFKA)["spec"]["replicas"] == ADDED
    assert release.get("pod", ADDED_POD)["metadata"]["uid"] == uid

    release.apply(make_emptying("drain-the-added-broker", ADDED))
    ended = release.wait_ready("partitionreassignment", "drain-the-added-broker")
    assert [ADDED in partition["replicas"] for partition in ended["partitions"]] == [False]

    release.upgrade()
    release.wait_for(lambda: brokers(release) == list(BROKER_IDS), "the drained broker has left")
    release.wait_healthy()
    assert release.kubectl("get", "pod", "--ignore-not-found", ADDED_POD) == ""
    assert ADDED not in release.status("kafkatopic", "on-the-added-broker")["partitions"][0]["replicas"]


def phase(release: Release, name: str) -> str | None:
    return release.status("partitionreassignment", name).get("phase")


def has_our_controller(release: Release) -> bool:
    return bool(release.status("kafkacluster", "demo").get("controller", {}).get("kind") == "Kontroller")


def brokers(release: Release) -> list[int]:
    """Return the ids of the registered brokers."""
    return [broker["id"] for broker in release.status("kafkacluster", "demo")["brokers"]]
