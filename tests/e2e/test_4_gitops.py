"""A GitOps folder on the installed cluster: Argo CD and Flux report the right health, and find nothing to change."""

import pytest

from tests.e2e.release import Release
from tests.e2e.toolbox import BOOTSTRAP, Toolbox
from tests.real.operator.gitops import EXAMPLES, apply, differences, find_stable_parts, health_of

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

KINDS = "kafkaclusters,kafkatopics,partitionreassignments,preferredelections,featuresets,rebalanceplans"


def test_both_tools_judge_what_was_installed_and_moved(release: Release) -> None:
    seen = release.get(KINDS)["items"]
    assert {each["kind"] for each in seen} >= {
        "KafkaCluster",
        "KafkaTopic",
        "FeatureSet",
        "PartitionReassignment",
        "PreferredElection",
    }
    judged = {f"{each['kind']} {each['metadata']['name']}": health_of(each) for each in seen}
    dry_run = judged.pop("FeatureSet features")
    assert (dry_run.argo, dry_run.flux) == ("Suspended", "Current")
    # The moved topics differ from their specs, and only report that.
    assert "moved by kpr/move-it and kept" in judged["KafkaTopic moving"].argo_message
    for name, health in judged.items():
        assert (health.argo, health.kstatus, health.flux) == ("Healthy", "Current", "Current"), name


def test_the_folder_applied_twice_changes_nothing(release: Release, toolbox: Toolbox) -> None:
    start_from_nothing(release, toolbox)
    applied = apply(release.kubernetes, EXAMPLES)
    for each in applied:
        if each["kind"] != "FeatureSet":
            release.wait_ready(each["kind"], each["metadata"]["name"])
    before = [find_stable_parts(release.kubernetes, each) for each in applied]
    assert differences(release.kubernetes, EXAMPLES) == ""
    apply(release.kubernetes, EXAMPLES)
    assert [find_stable_parts(release.kubernetes, each) for each in applied] == before


def start_from_nothing(release: Release, toolbox: Toolbox) -> None:
    """Remove the objects, and the topics that they leave."""
    release.kubectl("delete", KINDS, "--all", "--timeout=60s")
    for topic in toolbox.run("kafka-topics.sh", "--bootstrap-server", BOOTSTRAP, "--list").split():
        if not topic.startswith("__"):
            toolbox.run("kafka-topics.sh", "--bootstrap-server", BOOTSTRAP, "--delete", "--topic", topic)
