"""The remains of `helm uninstall`: the data and the resources, and no hanging finalizer."""

import pytest

from tests.e2e.manifests import cluster, topic
from tests.e2e.release import NAME, Release

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]


def test_an_uninstall_leaves_the_data_and_no_finalizer_hanging(release: Release) -> None:
    release.apply(cluster("demo"))
    retained = topic("kept-by-the-uninstall", [[1, 2]])
    deleted = topic("would-be-deleted", [[1, 2]])
    deleted["spec"]["deletionPolicy"] = "Delete"
    release.apply(retained, deleted)
    release.wait_ready("kafkatopic", "kept-by-the-uninstall")
    release.wait_ready("kafkatopic", "would-be-deleted")
    volumes = {claim["metadata"]["name"] for claim in release.get("pvc")["items"]}
    sets = {f"data-{NAME}-{component}" for component in ("controller", "kafka", "zookeeper")}
    assert {volume.rpartition("-")[0] for volume in volumes} == sets

    release.uninstall()

    release.wait_for(lambda: not list_unfinished_pods(release), "all pods have ended", silence_s=300)
    assert {claim["metadata"]["name"] for claim in release.get("pvc")["items"]} == volumes
    kinds = "kafkaclusters,kafkatopics,partitionreassignments,preferredelections,featuresets,rebalanceplans"
    left = release.get(kinds)["items"]
    assert {"kept-by-the-uninstall", "would-be-deleted"} <= {each["metadata"]["name"] for each in left}
    release.kubectl("delete", kinds, "--all", "--timeout=60s")
    assert release.get(kinds)["items"] == []


def list_unfinished_pods(release: Release) -> list[str]:
    """Return the release's pods that have not completed, unlike those of `helm test`."""
    pods = release.get("pods", "--selector", f"app.kubernetes.io/instance={NAME}")["items"]
    return [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] != "Succeeded"]


def test_what_is_installed_again_finds_its_topics(release: Release) -> None:
    release.install()
    release.apply(cluster("demo"))
    assert release.wait_ready("kafkacluster", "demo")["counts"]["topics"] >= 2
    for name in ("kept-by-the-uninstall", "would-be-deleted"):
        release.apply(topic(name, [[1, 2]]))
        assert release.wait_ready("kafkatopic", name)["partitions"][0]["replicas"] == [1, 2]
