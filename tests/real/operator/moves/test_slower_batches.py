"""A RebalancePlan slows its running batch down when a follower of another partition really falls behind, and gives it
another throttle of the spec."""

from collections.abc import Iterator
from typing import Any

import pytest

from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.parts import Part
from devcluster.running.processes import wait_until
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import serve_topic, wait_until_in_sync, wait_until_served
from tests.real.operator.operated import RECORD_BYTES, Objects, fill, operate_namespace, run_operator
from tests.real.operator.witnesses import witness_of

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(300)]

MOVE = "partitionreassignment"
RATE = RECORD_BYTES
PROPERTIES = {
    "replica.lag.time.max.ms": 5_000,
    # A broker that is paused stays registered for as long as the test may run.
    "broker.session.timeout.ms": 600_000,
}


@pytest.fixture(scope="module")
def kafka(servers_folder: RunFolder) -> Iterator[KRaftCluster]:
    """Two brokers that copy, and a third one that falls behind."""
    with KRaftCluster(servers_folder, controllers=1, name="slower-batches", properties=PROPERTIES) as kraft:
        yield kraft


@pytest.fixture(scope="module")
def objects(kubernetes_api: KubernetesCluster, kafka: KRaftCluster) -> Iterator[Objects]:
    with operate_namespace(kubernetes_api, bootstrapServers=kafka.bootstrap_servers) as found:
        yield found


def test_a_running_batch_is_slowed_down_when_another_partition_loses_a_replica(
    kafka: KRaftCluster, objects: Objects, servers_folder: RunFolder, kubernetes_api: KubernetesCluster
) -> None:
    spec = {"mode": "drain", "brokers": [2], "scope": {"topics": ["orders"], "excludeBrokers": [3]}}
    how = {"throttle": {"bytesPerSecond": RATE}, "betweenLooksSeconds": 1}

    def plan() -> dict[str, Any]:
        return objects.status("rebalanceplan", "drain")

    def batch() -> dict[str, Any]:
        return objects.status(MOVE, plan().get("reassignment") or "none yet")

    with witness_of(kafka) as witness, run_operator(servers_folder, kubernetes_api):
        serve_topic(witness, "orders", [[2]])
        serve_topic(witness, "logs", [[1, 3]])
        fill(kafka, "orders")
        with nothing_lost(kafka.broker(1).address, "logs", more_than=10):
            objects.apply("RebalancePlan", "drain", {**spec, **how})
            wait_until(lambda: "startTime" in batch(), "the batch begins")
            # On a busy machine a follower may lag before it is paused, which slows the batch down as well.
            wait_until(lambda: plan().get("outOfSyncBrokers") in ([], None), "all followers are in sync")
            kafka.broker(3).pause()
            try:
                wait_until_in_sync(witness, "logs", 1)
                objects.wait_for_event("drain", "BatchesSlower")
                slower = {"bytesPerSecond": RATE // 2, "isSet": True}
                wait_until(lambda: batch().get("throttle") == slower, "the batch is slower")
            finally:
                kafka.broker(3).resume()
            rates = witness.throttles("orders").rates
            assert rates[1] == rates[2] == (RATE // 2, RATE // 2)
            assert plan()["throttlePercent"] == 50
            wait_until_served(witness, "logs")
        assert witness.read_assignment("orders", 0) == [1, 2], "it still moves"
        objects.patch("rebalanceplan", "drain", {"spec": {"throttle": {"bytesPerSecond": 10**9}}})
        objects.wait_for("rebalanceplan", "drain", "Complete")
        assert witness.read_assignment("orders", 0) == [1]
        assert witness.throttles("orders") == ({}, ([], []), False)
    assert (plan()["counts"]["done"], plan()["throttlePercent"]) == (1, 50)
