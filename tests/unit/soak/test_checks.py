"""The checks at the end of the soak: silent about a sound cluster, and each one names its fault."""

from dataclasses import replace

from devcluster.soak.checks import Expected, problems
from devcluster.soak.snapshot import BrokerView, Snapshot, State

ORDERS = ("orders", 0)
LED_BY_1 = State(leader=1, leader_epoch=3, isr=(1, 2))
VIEW = BrokerView(
    controller=1000,
    brokers=frozenset({1, 2}),
    assigned={ORDERS: (1, 2)},
    states={ORDERS: LED_BY_1},
    logs=frozenset({"orders-0"}),
)
SOUND = Snapshot(
    controller=1000,
    controller_epoch=5,
    topics={"orders": 1},
    assigned={ORDERS: (1, 2)},
    reassigning=frozenset(),
    states={ORDERS: LED_BY_1},
    state_epochs={ORDERS: 5},
    requests=(),
    configs={"topics/orders": {"retention.ms": "1"}},
    registered=frozenset({1, 2}),
    brokers={1: VIEW, 2: VIEW},
)
EXPECTED = Expected(topics={"orders": 1}, deleted={"payments"}, controllers={1000, 1001}, brokers={1, 2})


def replace_state(state: State) -> Snapshot:
    """The cluster with another state of its partition, which the brokers know."""
    view = replace(VIEW, states={ORDERS: state})
    return replace(SOUND, states={ORDERS: state}, brokers={1: view, 2: view})


def replace_view(view: BrokerView | None) -> Snapshot:
    """The cluster with another view of broker 2."""
    return replace(SOUND, brokers={1: VIEW, 2: view})


def test_a_sound_cluster_has_no_problems() -> None:
    assert problems(SOUND, EXPECTED) == []


def test_a_foreign_controller_is_named() -> None:
    wrong = problems(replace(SOUND, controller=2), EXPECTED)
    assert "/controller names 2, which is none of ours" in wrong


def test_a_missing_broker_is_named() -> None:
    assert problems(replace(SOUND, registered=frozenset({1})), EXPECTED) == ["broker 2 is not registered"]


def test_a_broker_that_does_not_answer_is_named() -> None:
    assert problems(replace_view(None), EXPECTED) == ["broker 2 does not answer"]


def test_a_topic_that_was_lost_is_named() -> None:
    expected = replace(EXPECTED, topics={"orders": 1, "invoices": 2})
    assert problems(SOUND, expected) == ["topic invoices was created and is not there"]


def test_a_wrong_number_of_partitions_is_named() -> None:
    assert problems(SOUND, replace(EXPECTED, topics={"orders": 2})) == ["topic orders has 1 partitions, expected 2"]


def test_a_deleted_topic_that_is_still_there_is_named_with_its_configuration() -> None:
    assert problems(SOUND, replace(EXPECTED, topics={}, deleted={"orders"})) == [
        "topic orders was deleted and is still in ZooKeeper",
        "topic orders was deleted and still has a configuration in ZooKeeper",
    ]


def test_requests_that_are_left_are_shown() -> None:
    left = replace(SOUND, requests=("/admin/delete_topics/orders",), reassigning=frozenset({ORDERS}))
    assert problems(left, EXPECTED) == [
        "still asked for: /admin/delete_topics/orders",
        "orders-0 is still being reassigned according to its topic's znode",
    ]


def test_a_partition_without_leader_is_named() -> None:
    state = State(leader=-1, leader_epoch=4, isr=(1, 2))
    assert problems(replace_state(state), EXPECTED) == ["orders-0 has no leader, ISR {1,2}"]


def test_a_partition_without_state_is_named() -> None:
    assert "orders-0 has no state" in problems(replace(SOUND, states={}, state_epochs={}), EXPECTED)


def test_a_replica_out_of_sync_is_named() -> None:
    state = State(leader=1, leader_epoch=3, isr=(1,))
    assert problems(replace_state(state), EXPECTED) == ["orders-0 has AR {1,2} and ISR {1}, leader 1"]


def test_a_leader_outside_of_the_isr_or_of_the_assignment_is_named() -> None:
    assert "orders-0 is led by 2, which is not in its ISR {1}" in problems(
        replace_state(State(leader=2, leader_epoch=3, isr=(1,))), EXPECTED
    )
    assert "orders-0 is led by 3, which is not in AR {1,2}" in problems(
        replace_state(State(leader=3, leader_epoch=3, isr=(1, 2, 3))), EXPECTED
    )


def test_a_state_from_the_future_is_named() -> None:
    assert problems(replace(SOUND, state_epochs={ORDERS: 6}), EXPECTED) == [
        "orders-0 was written under controller epoch 6, and /controller_epoch is 5"
    ]


def test_a_broker_that_believes_something_else_is_named() -> None:
    stale = replace(VIEW, states={ORDERS: replace(LED_BY_1, leader_epoch=2)})
    assert problems(replace_view(stale), EXPECTED) == [
        f"broker 2 has orders-0 as {stale.states[ORDERS]}, ZooKeeper has {LED_BY_1}"
    ]
    assert problems(replace_view(replace(VIEW, assigned={ORDERS: (1, 2, 3)})), EXPECTED) == [
        "broker 2 has orders-0 with AR {1,2,3}, ZooKeeper has {1,2}"
    ]
    assert problems(replace_view(replace(VIEW, assigned={}, states={})), EXPECTED) == [
        "broker 2 has no metadata of orders-0"
    ]
    assert problems(replace_view(replace(VIEW, controller=1001)), EXPECTED) == [
        "broker 2 says the controller is 1001, and it is 1000"
    ]
    assert problems(replace_view(replace(VIEW, brokers=frozenset({2}))), EXPECTED) == [
        "broker 2 does not know of broker 1"
    ]


def test_a_topic_that_only_a_broker_still_has_is_named() -> None:
    ghost = ("payments", 0)
    view = replace(VIEW, assigned={**VIEW.assigned, ghost: (1,)}, states={**VIEW.states, ghost: LED_BY_1})
    assert problems(replace_view(view), EXPECTED) == [
        "broker 2 still has payments-0 in its metadata, which is not in ZooKeeper"
    ]


def test_stray_and_missing_logs_are_named() -> None:
    view = replace(VIEW, logs=frozenset({"payments-0", "orders-0.5c9-delete"}))
    assert problems(replace_view(view), EXPECTED) == [
        "broker 2 has the stray log directory orders-0.5c9-delete",
        "broker 2 has the stray log directory payments-0",
        "broker 2 has no log directory orders-0",
    ]


def test_a_log_that_kafkas_own_controller_left_is_not_stray() -> None:
    view = replace(VIEW, logs=VIEW.logs | {"payments-0"})
    assert problems(replace_view(view), replace(EXPECTED, left_by_kafka=lambda: {"payments-0"})) == []


def test_throttles_that_are_left_are_named() -> None:
    configs = {
        "topics/orders": {"leader.replication.throttled.replicas": "0:1"},
        "brokers/1": {"follower.replication.throttled.rate": "1000"},
    }
    assert problems(replace(SOUND, configs=configs), EXPECTED) == [
        "/config/topics/orders still has the throttle leader.replication.throttled.replicas=0:1",
        "/config/brokers/1 still has the throttle follower.replication.throttled.rate=1000",
    ]
