"""The notes that Helm prints after an install tell the user what to do next."""

import pytest
import yaml

from devcluster.clusters.kubernetes import KubernetesApi
from tests.unit.chart.rendering import CHART, RELEASE_NAMESPACE, SELF_CONTAINED, Object


def test_the_notes_say_what_to_do_next(api: KubernetesApi, release: str) -> None:
    assert "rollout status deployment/kontroller-operator" in release
    assert "rollout status statefulset/kontroller-controller" in release
    proposed = release.split("<<END\n")[1].split("END")[0]
    printed = api.kubectl("apply", "--dry-run=server", "-n", RELEASE_NAMESPACE, "-f", "-", stdin=proposed)
    assert "kafkacluster.kontroller.dev/demo created" in printed
    assert yaml.safe_load(proposed)["spec"]["zookeeper"]["connect"].endswith(".svc:2181/kafka")


@pytest.mark.parametrize(
    ("values", "spec"),
    [
        ((), {"zookeeper": {"connect": "zookeeper:2181/kafka"}}),
        (("--set", "clusterCheck.bootstrapServers=kafka-0.kafka:9092"), {"bootstrapServers": "kafka-0.kafka:9092"}),
    ],
)
def test_the_notes_name_the_cluster_that_is_there_as_far_as_they_know_it(
    api: KubernetesApi, values: tuple[str, ...], spec: Object
) -> None:
    here = ("--namespace", RELEASE_NAMESPACE, "--set", "crds.install=false", "--dry-run=client")
    notes = api.helm("install", "other", CHART, *here, *values)
    proposed = notes.split("<<END\n")[1].split("END")[0]
    assert yaml.safe_load(proposed)["spec"] == spec
    assert "bootstrapServers" in proposed, "who has a cluster without ZooKeeper reads what to put there"


def test_the_notes_say_whether_the_volume_is_there(api: KubernetesApi) -> None:
    # With another name, because the release of this file's other tests may still be there.
    here = ("--namespace", RELEASE_NAMESPACE, "--set", "crds.install=false", "--dry-run=server")
    notes = api.helm("install", "other", CHART, *here, *SELF_CONTAINED, "--set", "history.enabled=true")
    assert "create that claim (it is not there yet)" in notes
    assert "create job --from=cronjob/other-kontroller-history" in notes
