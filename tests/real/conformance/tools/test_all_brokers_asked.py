"""Tools query every broker, including the controller, and merge the answers: nothing is listed twice."""

import json
from collections import Counter
from typing import Any

from confluent_kafka import Consumer, Producer
from kio.schema.errors import ErrorCode
from kio.schema.list_groups.v5.request import ListGroupsRequest

from devcluster.clients import tools
from tests.real.conformance.at_clients_listener import run_at_brokers
from tests.real.conformance.clusters import ConformanceCluster
from tests.real.conformance.set_ups import mark_since


def test_each_replica_is_in_the_log_directories_of_its_broker_alone(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("looked-for", [[1, 2], [2, 3]])
    told = run_at_brokers(cluster, tools.LOG_DIRS, "--describe", "--topic-list", "looked-for")
    described: dict[str, Any] = json.loads(told.splitlines()[-1])
    replicas = [
        (broker["broker"], replica["partition"])
        for broker in described["brokers"]
        for directory in broker["logDirs"]
        for replica in directory["partitions"]
    ]
    assert sorted(replicas) == [(1, "looked-for-0"), (2, "looked-for-0"), (2, "looked-for-1"), (3, "looked-for-1")]


@mark_since("3.0", "they do not list transactions")
def test_a_transactional_id_is_listed_once(cluster: ConformanceCluster) -> None:
    told = cluster.librdkafka(cluster.kafka.bootstrap_servers)
    Producer({**told, "transactional.id": "listed"}).init_transactions(60)
    rows = [line.split() for line in run_at_brokers(cluster, tools.TRANSACTIONS, "list").splitlines()]
    assert [row[0] for row in rows if row].count("listed") == 1


def test_a_group_is_listed_once(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("read-by-a-group", [[1, 2, 3]])
    consumer = Consumer({**cluster.librdkafka(cluster.kafka.bootstrap_servers), "group.id": "listed"})
    try:
        consumer.subscribe(["read-by-a-group"])
        cluster.wait(lambda: consumer.poll(0.5) is None and listings(cluster)["listed"] > 0, "the group is listed")
        assert listings(cluster)["listed"] == 1
        assert run_at_brokers(cluster, tools.CONSUMER_GROUPS, "--list").splitlines().count("listed") == 1
    finally:
        consumer.close()


def listings(cluster: ConformanceCluster) -> Counter[str]:
    """Return how often each group is listed if every node in Metadata is asked."""
    request = ListGroupsRequest(states_filter=(), types_filter=())
    nodes = cluster.metadata(cluster.order[0]).brokers
    answers: list[Any] = [cluster.ask_at((node.host, int(node.port)), request) for node in nodes]
    assert {answer.error_code for answer in answers} == {ErrorCode.none}
    return Counter(str(group.group_id) for answer in answers for group in answer.groups)
