"""Unmodified Kafka tools work with the brokers, and with the controller, which they take for a broker."""

from devcluster.clients import tools
from devcluster.running.processes import wait_until
from tests.real.controller.clusters import OurCluster

LINES = [f"line {number}" for number in range(50)]


def test_a_topic_is_described(our_cluster: OurCluster) -> None:
    our_cluster.serve_topic("described", [[2, 3, 4], [3, 4, 5]])
    shown = tools.run_tool(
        tools.TOPICS, "--bootstrap-server", our_cluster.bootstrap, "--describe", "--topic", "described"
    )
    assert shown.returncode == 0, shown.stderr
    assert "PartitionCount: 2" in shown.stdout
    assert "Partition: 0\tLeader: 2\tReplicas: 2,3,4" in shown.stdout


def test_messages_go_in_and_out_and_a_group_keeps_its_place(our_cluster: OurCluster) -> None:
    our_cluster.serve_topic("spoken", [[1, 2, 3]])
    produced = tools.run_tool(
        tools.CONSOLE_PRODUCER,
        *("--bootstrap-server", our_cluster.bootstrap, "--topic", "spoken", "--producer-property", "acks=all"),
        stdin="\n".join(LINES),
    )
    assert produced.returncode == 0, produced.stderr
    consumed = tools.run_tool(
        tools.CONSOLE_CONSUMER,
        *("--bootstrap-server", our_cluster.bootstrap, "--topic", "spoken", "--group", "listeners"),
        *("--from-beginning", "--max-messages", str(len(LINES)), "--timeout-ms", "30000"),
    )
    assert consumed.stdout.splitlines() == LINES, consumed.stderr
    group = tools.run_tool(
        tools.CONSUMER_GROUPS, "--bootstrap-server", our_cluster.bootstrap, "--describe", "--group", "listeners"
    )
    assert f"{len(LINES)} " in group.stdout, group.stdout + group.stderr


def test_the_controller_itself_serves_as_bootstrap_server(our_cluster: OurCluster) -> None:
    our_cluster.serve_topic("relayed", [[1, 2, 3]])
    listed = tools.run_tool(tools.TOPICS, "--bootstrap-server", our_cluster.controller.address, "--list")
    assert "relayed" in listed.stdout.splitlines(), listed.stderr


def test_a_topic_that_a_broker_creates_by_itself_has_no_replica_on_the_controller(our_cluster: OurCluster) -> None:
    """Brokers place the replicas of internal topics on every broker they know, and they know the controller as one."""
    our_cluster.serve_topic("grouped", [[1, 2, 3]])
    tools.run_tool(
        tools.CONSOLE_CONSUMER,
        *("--bootstrap-server", our_cluster.bootstrap, "--topic", "grouped", "--group", "any", "--timeout-ms", "5000"),
    )
    znodes = our_cluster.znodes
    offsets = "__consumer_offsets"
    wait_until(lambda: znodes.read(f"/brokers/topics/{offsets}") is not None, "the topic is created")
    partitions = range(len(znodes.read(f"/brokers/topics/{offsets}")["partitions"]))
    our_cluster.wait_until_served(offsets, partitions)
    for partition in partitions:
        assert our_cluster.controller.controller_id not in znodes.read_assignment(offsets, partition)
        assert len(znodes.read_assignment(offsets, partition)) == 3
