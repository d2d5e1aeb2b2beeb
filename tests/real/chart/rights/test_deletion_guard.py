"""A deletion policy that no operator has seen deletes nothing and is not lost: the chart's guard on a real API server."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from devcluster.clusters.kubernetes import CommandError, KubernetesApi
from devcluster.running.processes import wait_until
from tests.real.chart.charts import install_chart

NAMESPACE = "payments"
OF_ITS_OWN = {"topicId": "AAAAAAAAAAAAAAAAAAAABw"}
DELETE = {"partitions": 1, "replicationFactor": 1, "deletionPolicy": "Delete"}
REFUSAL = "deletionPolicy is Delete, but no operator has seen that yet"


class Topics:
    """The KafkaTopics of a namespace without an operator."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api

    def create(self, name: str, spec: dict[str, Any], status: dict[str, Any], **metadata: Any) -> None:
        body = {
            "apiVersion": "kontroller.dev/v1alpha1",
            "kind": "KafkaTopic",
            "metadata": {"name": name, "namespace": NAMESPACE, **metadata},
            "spec": {"clusterRef": {"name": "demo"}, **spec},
        }
        self._api.kubectl("create", "-f", "-", stdin=json.dumps(body))
        if status:
            self.patch(name, {"status": status}, "--subresource=status")

    def patch(self, name: str, patch: dict[str, Any], *how: str) -> None:
        self._api.kubectl("patch", "kafkatopic", name, "-n", NAMESPACE, "--type=merge", *how, "-p", json.dumps(patch))

    def delete(self, name: str) -> None:
        self._api.kubectl("delete", "kafkatopic", name, "-n", NAMESPACE, "--wait=false")

    def is_guarded(self) -> bool:
        self.create("probe", DELETE, OF_ITS_OWN)
        try:
            self.delete("probe")
        except CommandError:
            self.patch("probe", {"spec": {"deletionPolicy": "Retain"}})
            self.delete("probe")
            return True
        return False


@pytest.fixture(scope="module")
def topics(api: KubernetesApi) -> Iterator[Topics]:
    with install_chart(api, "--set", "deletionGuard.enabled=true"):
        topics = Topics(api)
        wait_until(topics.is_guarded, "the guard is in force")
        yield topics


def test_a_topic_that_is_to_be_deleted_waits_for_the_operator_or_for_another_policy(topics: Topics) -> None:
    topics.create("late", DELETE, OF_ITS_OWN)
    with pytest.raises(CommandError, match=REFUSAL):
        topics.delete("late")
    topics.patch("late", {"metadata": {"finalizers": ["kontroller.dev/finalizer"]}})
    topics.delete("late")
    topics.patch("late", {"metadata": {"finalizers": None}})


@pytest.mark.parametrize(
    ("spec", "status", "metadata"),
    [
        ({"deletionPolicy": "Retain"}, OF_ITS_OWN, {}),
        ({}, {}, {}),
        ({}, OF_ITS_OWN, {"annotations": {"kontroller.dev/pause": "true"}}),
    ],
    ids=["retained", "never carried out", "paused"],
)
def test_what_leaves_nothing_behind_against_its_spec_goes_at_once(
    topics: Topics, spec: dict[str, Any], status: dict[str, Any], metadata: dict[str, Any]
) -> None:
    topics.create("free", {**DELETE, **spec}, status, **metadata)
    topics.delete("free")
