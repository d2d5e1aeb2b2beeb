"""The lines of the state change log for partitions that changed alike, or could not change."""

from simulation.cluster import Cluster, tp


async def test_partitions_that_get_no_leader_for_the_same_reason_share_a_line(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("orders", *[[1]] * 30)
    cluster.create_topic("other", [2])
    await cluster.settle()
    cluster.kill_broker(1)
    cluster.kill_broker(2)
    await cluster.settle()
    lines = [line for line in cluster.logs if line["event"] == "no leader elected"]
    assert {line["log_level"] for line in lines} == {"warning"}
    assert all(line["reason"] for line in lines)
    named = [partition for line in lines for partition in line["partitions"]]
    assert set(named) == {str(tp("other")), *(str(tp("orders", number)) for number in range(30))}
    assert len(lines) == len({line["reason"] for line in lines})
