"""When leaders go back by themselves: broker by broker, above a threshold, and only where it can succeed."""

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.leader_balance import Leadership, partitions_to_rebalance


def leaderships(*rows: tuple[int, int, bool]) -> dict[TopicPartition, Leadership]:
    """A partition for each row: preferred replica, leader, and whether the preferred one could lead."""
    return {
        TopicPartition(TopicName("t"), PartitionId(number)): Leadership(
            preferred=BrokerId(preferred), leader=BrokerId(leader), can_lead=can_lead
        )
        for number, (preferred, leader, can_lead) in enumerate(rows)
    }


def chosen(rows: dict[TopicPartition, Leadership], threshold: int = 10) -> list[int]:
    return [partition.partition for partition in partitions_to_rebalance(rows, threshold)]


def test_nothing_is_done_where_all_lead_as_preferred() -> None:
    assert chosen(leaderships((1, 1, True), (2, 2, True))) == []
    assert chosen({}) == []


def test_a_broker_at_the_threshold_is_left_alone_and_one_above_it_is_not() -> None:
    rows = leaderships(*[(1, 1, True)] * 9, (1, 2, True))
    assert chosen(rows, 10) == []
    assert chosen(rows, 9) == [9]


def test_each_broker_is_judged_by_its_own_leaderships() -> None:
    rows = leaderships(*[(1, 1, True)] * 99, (1, 2, True), (2, 1, True))
    assert chosen(rows) == [100]


def test_what_cannot_be_elected_counts_and_is_not_tried() -> None:
    assert chosen(leaderships((1, 2, False), (1, 2, True))) == [1]


def test_a_threshold_of_zero_gives_everything_back() -> None:
    assert chosen(leaderships(*[(1, 1, True)] * 999, (1, 2, True)), 0) == [999]
