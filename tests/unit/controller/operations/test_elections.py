"""Elections that are asked for, and those that may lose messages."""

import pytest

from controller_core.model.ids import ControllerEpoch, TopicName
from controller_core.zk import codecs, paths
from simulation.checks import assert_sound
from simulation.cluster import Cluster, tp
from simulation.process import ProcessSettings

ORDERS = tp("orders")


@pytest.fixture
async def imbalanced(cluster: Cluster) -> Cluster:
    """Three brokers; 1 is preferred for `orders` and in sync, and 2 leads."""
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2, 3])
    cluster.create_topic("balanced", [2, 3])
    await cluster.settle()
    cluster.bounce_broker(1)
    await cluster.replicate()
    assert cluster.leadership(ORDERS) == (2, [2, 3, 1])
    return cluster


async def test_leadership_goes_back_to_the_preferred_replica_and_the_request_is_removed(imbalanced: Cluster) -> None:
    before = imbalanced.state(ORDERS).leader_and_isr
    imbalanced.request_election(ORDERS, tp("balanced"))
    await imbalanced.settle()
    assert imbalanced.leadership(ORDERS) == (1, [2, 3, 1])
    assert imbalanced.state(ORDERS).leader_and_isr.leader_epoch == before.leader_epoch + 1
    assert imbalanced.state(tp("balanced")).leader_and_isr.leader_epoch == 0, "it was led as preferred already"
    assert not imbalanced.exists(paths.PREFERRED_REPLICA_ELECTION)
    assert_sound(imbalanced)


async def test_a_request_is_removed_with_the_children_that_a_stranger_created(imbalanced: Cluster) -> None:
    imbalanced.request_election(ORDERS)
    imbalanced.put(f"{paths.PREFERRED_REPLICA_ELECTION}/foo", b"")
    await imbalanced.settle()
    assert imbalanced.leadership(ORDERS) == (1, [2, 3, 1])
    assert not imbalanced.exists(paths.PREFERRED_REPLICA_ELECTION)


async def test_a_state_that_a_later_controller_wrote_is_left_to_that_one(imbalanced: Cluster) -> None:
    state = imbalanced.state(ORDERS)
    epoch = ControllerEpoch(state.controller_epoch + 1)
    imbalanced.put(paths.partition_state(ORDERS), codecs.encode_partition_state(state.leader_and_isr, epoch))
    imbalanced.request_election(ORDERS)
    await imbalanced.settle()
    assert imbalanced.state(ORDERS).leader_and_isr == state.leader_and_isr
    reason = f"its state was written by a later controller, of epoch {epoch}"
    assert reason in [entry.get("reason") for entry in imbalanced.logs]


@pytest.mark.parametrize("is_live", [False, True])
async def test_a_preferred_replica_that_cannot_lead_is_not_elected(imbalanced: Cluster, is_live: bool) -> None:
    imbalanced.kill_broker(1)
    await imbalanced.settle()
    if is_live:
        imbalanced.start_broker(1)
        await imbalanced.settle()
    before = imbalanced.state(ORDERS)
    imbalanced.request_election(ORDERS)
    await imbalanced.settle()
    assert imbalanced.state(ORDERS) == before
    assert not imbalanced.exists(paths.PREFERRED_REPLICA_ELECTION)
    reason = f"the preferred replica 1 is not {'in sync' if is_live else 'live'}"
    assert reason in [entry.get("reason") for entry in imbalanced.logs]


@pytest.mark.parametrize(
    "data",
    [
        b"{not json", b"", b"{}", b'{"version":1,"partitions":[]}', b'{"version":1,"partitions":[7]}',
        b'{"version":1,"partitions":[{"topic":"unknown","partition":0}]}',
        b'{"version":1,"partitions":[{"topic":"orders","partition":99}]}',
    ],
)  # fmt: skip
async def test_a_request_that_makes_no_sense_is_removed_and_blocks_nothing(imbalanced: Cluster, data: bytes) -> None:
    imbalanced.put(paths.PREFERRED_REPLICA_ELECTION, data)
    await imbalanced.settle()
    assert not imbalanced.exists(paths.PREFERRED_REPLICA_ELECTION)
    imbalanced.request_election(ORDERS)
    await imbalanced.settle()
    assert imbalanced.leadership(ORDERS)[0] == 1


async def test_a_bad_entry_holds_up_no_good_one(imbalanced: Cluster) -> None:
    entries = '{"topic":"unknown","partition":0},{"topic":7},{"topic":"orders","partition":0}'
    imbalanced.put(paths.PREFERRED_REPLICA_ELECTION, f'{{"version":1,"partitions":[{entries}]}}'.encode())
    await imbalanced.settle()
    assert imbalanced.leadership(ORDERS)[0] == 1


async def test_an_election_that_waited_for_a_controller_is_held_by_the_next(imbalanced: Cluster) -> None:
    await imbalanced.active.kill()
    imbalanced.request_election(ORDERS)
    await imbalanced.serve()
    assert imbalanced.leadership(ORDERS)[0] == 1
    assert not imbalanced.exists(paths.PREFERRED_REPLICA_ELECTION)


async def test_a_topic_that_is_being_deleted_is_not_elected_for(imbalanced: Cluster) -> None:
    imbalanced.kill_broker(3)
    await imbalanced.settle()
    imbalanced.request_deletion("orders")
    imbalanced.request_election(ORDERS)
    await imbalanced.settle()
    assert not imbalanced.exists(paths.PREFERRED_REPLICA_ELECTION)


# Unclean elections


@pytest.mark.parametrize(
    ("default", "config", "is_elected"),
    [
        (False, None, False),
        (False, {}, False),
        (False, {"unclean.leader.election.enable": "true"}, True),
        (False, {"unclean.leader.election.enable": "TRUE"}, True),
        (False, {"unclean.leader.election.enable": "false"}, False),
        (True, None, True),
        (True, {"retention.ms": "1"}, True),
        (True, {"unclean.leader.election.enable": "false"}, False),
    ],
)
async def test_a_replica_outside_the_isr_leads_only_where_the_topic_or_the_default_allows_it(
    cluster: Cluster, default: bool, config: dict[str, str] | None, is_elected: bool
) -> None:
    cluster.settings = ProcessSettings(unclean_leader_election_enable=default)
    cluster.start_brokers(1, 2)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2], config=config)
    await cluster.settle()
    cluster.bounce_broker(2)
    await cluster.settle()
    assert cluster.leadership(ORDERS) == (1, [1])
    cluster.kill_broker(1)
    await cluster.settle()
    assert cluster.leadership(ORDERS) == ((2, [2]) if is_elected else (-1, [1]))
    assert cluster.broker(2).leads(ORDERS) == is_elected
    cluster.start_broker(1)
    await cluster.replicate()
    leader = 2 if is_elected else 1
    assert cluster.leadership(ORDERS) == (leader, [leader, 3 - leader])
    assert_sound(cluster)


async def test_an_unreadable_configuration_allows_no_unclean_election(cluster: Cluster) -> None:
    cluster.settings = ProcessSettings(unclean_leader_election_enable=True)
    cluster.start_brokers(1, 2)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2])
    cluster.put(paths.topic_config(TopicName("orders")), b"garbled")
    await cluster.settle()
    cluster.bounce_broker(2)
    await cluster.settle()
    cluster.kill_broker(1)
    await cluster.settle()
    assert cluster.leadership(ORDERS) == (-1, [1])


async def test_a_clean_candidate_is_preferred_where_unclean_elections_are_allowed(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2, 3], config={"unclean.leader.election.enable": "true"})
    await cluster.settle()
    cluster.bounce_broker(2)
    await cluster.settle()
    cluster.kill_broker(1)
    await cluster.settle()
    assert cluster.leadership(ORDERS) == (3, [3])


async def test_an_unclean_leader_has_a_log_from_before_the_reassignment_if_there_is_one(cluster: Cluster) -> None:
    """The replicas that are being added may have nothing, and the others would cut their logs to match."""
    cluster.start_brokers(1, 2, 3, 4)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2], config={"unclean.leader.election.enable": "true"})
    await cluster.settle()
    cluster.bounce_broker(2)
    await cluster.settle()
    cluster.request_reassignment({ORDERS: [3, 4]})
    await cluster.settle()
    cluster.kill_broker(1)
    await cluster.settle()
    assert cluster.list_replicas(ORDERS) == [3, 4, 1, 2]
    assert cluster.leadership(ORDERS) == (2, [2])
    await cluster.replicate()
    await cluster.settle()
    assert cluster.list_replicas(ORDERS) == [3, 4]
    assert_sound(cluster)
