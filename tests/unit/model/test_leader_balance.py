"""The automatic leader rebalance: broker by broker, above a threshold."""

from controller_core.model.ids import BrokerId
from controller_core.model.leader_balance import find_brokers_over

ONE, TWO = BrokerId(1), BrokerId(2)


def test_nothing_is_done_where_all_lead_as_preferred() -> None:
    assert find_brokers_over({ONE: 0}, {ONE: 1, TWO: 1}, 0) == []
    assert find_brokers_over({}, {}, 10) == []


def test_a_broker_at_the_threshold_is_left_alone_and_one_above_it_is_not() -> None:
    assert find_brokers_over({ONE: 1}, {ONE: 10}, 10) == []
    assert find_brokers_over({ONE: 1}, {ONE: 10}, 9) == [ONE]


def test_each_broker_is_judged_by_its_own_leaderships() -> None:
    assert find_brokers_over({ONE: 1, TWO: 1}, {ONE: 100, TWO: 1}, 10) == [TWO]


def test_a_threshold_of_zero_gives_everything_back() -> None:
    assert find_brokers_over({ONE: 1}, {ONE: 1000}, 0) == [ONE]
