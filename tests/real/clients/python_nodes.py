"""Clients in Python that do what `devcluster.nodes` does in other languages."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

from confluent_kafka import admin
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic

from devcluster.nodes import Report, Step

librdkafka: Any = admin
LEADER_RATE: Final = "leader.replication.throttled.rate"
MS: Final = 10_000


class Steps:
    """The steps of a client."""

    def __init__(self) -> None:
        self.done: list[Step] = []

    def add(self, node: int, what: str, ask: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        """Add a step with the error of a question."""
        try:
            ask(*arguments, **options)
        except Exception as error:  # noqa: BLE001 - the libraries have many kinds, and the test shows them
            self.done.append(Step(node=node, what=what, error=str(error) or type(error).__name__))
        else:
            self.done.append(Step(node=node, what=what, error=""))


def use_kafka_python(command: str, address: str, *arguments: str) -> Report:
    """See `devcluster.nodes.use`."""
    client, steps = KafkaAdminClient(bootstrap_servers=address, request_timeout_ms=MS), Steps()
    nodes = _list_nodes(client, address)
    if command == "create":
        topic = NewTopic(arguments[0], 1, min(len(nodes), 3))
        steps.add(-1, "CreateTopics", client.create_topics, [topic], timeout_ms=MS)
    for node in nodes if command == "walk" else ():
        rates = ConfigResource(ConfigResourceType.BROKER, str(node), {LEADER_RATE: "1000000"})
        plain = ConfigResource(ConfigResourceType.BROKER, str(node))
        loggers = ConfigResource(ConfigResourceType.BROKER_LOGGER, str(node))
        steps.add(node, "DescribeConfigs", client.describe_configs, [plain])
        steps.add(node, "DescribeConfigs of loggers", client.describe_configs, [loggers])
        steps.add(node, "IncrementalAlterConfigs", client.alter_configs, [rates], incremental=True)
        steps.add(node, "AlterConfigs", client.alter_configs, [rates], incremental=False)
        steps.add(node, "AlterConfigs back", client.reset_configs, [rates])
        steps.add(node, "DescribeLogDirs", client.describe_log_dirs, brokers=[node])
        steps.add(node, "ListGroups", client.list_groups, broker_ids=[node])
        steps.add(node, "ApiVersions", client.get_broker_version_data, node)
    client.close()
    return Report(nodes=nodes, steps=steps.done)


def _list_nodes(client: KafkaAdminClient, address: str) -> list[int]:
    try:
        described = client.describe_cluster()
    except KeyError:
        # It needs a field that brokers before Kafka 3.7 do not send. For brokers of 2.7 it uses Metadata.
        older = KafkaAdminClient(bootstrap_servers=address, request_timeout_ms=MS, api_version=(2, 7))
        described = older.describe_cluster()
        older.close()
    return sorted(int(broker["broker_id"]) for broker in described["brokers"])


def use_librdkafka(command: str, address: str, *arguments: str) -> Report:
    """See `devcluster.nodes.use`."""
    client, steps, seconds = librdkafka.AdminClient({"bootstrap.servers": address}), Steps(), MS / 1000
    # Its DescribeCluster is a request to the controller, but its Metadata is not.
    nodes = sorted(client.list_topics(timeout=seconds).brokers)

    def wait_for(ask: Callable[..., dict[Any, Future[Any]]], asked: Any, **options: Any) -> None:
        for answer in ask([asked], **options).values():
            answer.result()

    if command == "create":
        topic = librdkafka.NewTopic(arguments[0], num_partitions=1, replication_factor=min(len(nodes), 3))
        steps.add(-1, "CreateTopics", wait_for, client.create_topics, topic, request_timeout=seconds)
        return Report(nodes=nodes, steps=steps.done)
    steps.add(-1, "ListGroups", client.list_consumer_groups(request_timeout=seconds).result)
    kind, operation = librdkafka.ConfigResource.Type, librdkafka.AlterConfigOpType
    for node in nodes:
        plain = librdkafka.ConfigResource(kind.BROKER, str(node))
        replaced = librdkafka.ConfigResource(kind.BROKER, str(node), set_config={LEADER_RATE: "1000000"})
        steps.add(node, "DescribeConfigs", wait_for, client.describe_configs, plain)
        for each, value in ((operation.SET, "1000000"), (operation.DELETE, None)):
            entry = librdkafka.ConfigEntry(LEADER_RATE, value, incremental_operation=each)
            altered = librdkafka.ConfigResource(kind.BROKER, str(node), incremental_configs=[entry])
            steps.add(node, f"IncrementalAlterConfigs {each.name}", wait_for, client.incremental_alter_configs, altered)
        steps.add(node, "AlterConfigs", wait_for, client.alter_configs, replaced)
        steps.add(node, "AlterConfigs to nothing", wait_for, client.alter_configs, plain)
    return Report(nodes=nodes, steps=steps.done)
