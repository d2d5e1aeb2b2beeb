"""Clients that know only the listener for clients find everything there, including the controller."""

from pathlib import Path

from tests.real.conformance import at_clients_listener
from tests.real.conformance.clusters import ConformanceCluster


def test_clients_are_sent_where_everybody_is_on_their_listener(cluster: ConformanceCluster) -> None:
    cluster.health_gate.open()


def test_topics_are_created_moved_and_deleted_at_the_clients_listener(
    cluster: ConformanceCluster, tmp_path: Path
) -> None:
    at_clients_listener.a_topic_lives(cluster, tmp_path)


def test_an_idempotent_producer_gets_its_id(cluster: ConformanceCluster) -> None:
    at_clients_listener.an_idempotent_producer_is_served(cluster)
