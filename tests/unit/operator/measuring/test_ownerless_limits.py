"""A limit whose object is gone is warned of, and removed ten minutes later; any other one is left alone."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_core.model.throttles import FOLLOWER_REPLICAS, LEADER_REPLICAS
from controller_operator.kafka.marked_throttles import Entry, find_marked_partitions
from controller_operator.kafka.requests.throttles import ThrottleReply
from controller_operator.kafka.throttle_steps import RemoveThrottle
from controller_operator.plans.outcome import Context
from controller_operator.plans.upkeep.ownerless_limits import REMOVED_AFTER, LimitsPlan, plan_ownerless_limits
from controller_operator.resources.cluster import OwnerlessLimit
from tests.unit.operator.clusters import NOW, ORDERS, assign, healthy, lead, topic, view

GONE, THERE = "shop/move/uid-1", "shop/other/uid-2"
LIMITS = (Entry(mark=1, bytes_per_second=5000, owner=GONE), Entry(mark=2, bytes_per_second=7000, owner=THERE))
LISTS = {LEADER_REPLICAS: "00:1,000:1,1:1", FOLLOWER_REPLICAS: "00:3"}
FIRST = TopicPartition(ORDERS, PartitionId(0))
REMOVE = RemoveThrottle(owner=GONE, partitions=frozenset({FIRST}))
QUIET = view(healthy([1, 2], [1, 2], config=LISTS))
MOVING = view(topic((assign([3, 1, 2], [3], [1]), lead(1, [1, 2])), (assign([1, 2]), lead(1, [1, 2])), config=LISTS))


def look(
    before: Sequence[OwnerlessLimit] = (),
    found: tuple[Entry, ...] | None = LIMITS,
    cluster: Snapshot = QUIET,
    after: timedelta = timedelta(),
    **context: Any,
) -> LimitsPlan:
    known = Context(now=NOW + after, **context)
    return plan_ownerless_limits(tuple(before), found, cluster, lambda owner: owner == THERE, known)


def test_the_mark_of_a_replica_is_the_zeros_before_it_and_what_others_set_has_none() -> None:
    lists = {LEADER_REPLICAS: "00:1, 000:1,010:2,10:3,*,x", FOLLOWER_REPLICAS: ""}
    second = TopicPartition(ORDERS, PartitionId(10))
    assert find_marked_partitions({ORDERS: lists}) == {1: {FIRST, second}, 2: {FIRST}}
    assert find_marked_partitions({TopicName("plain"): {LEADER_REPLICAS: "0:1"}}) == {}


def test_it_is_shown_and_warned_of_once_and_removed_after_ten_minutes() -> None:
    first = look()
    (row,) = first.rows
    assert (row.owner, row.bytes_per_second, row.topics, row.since) == (GONE, 5000, (ORDERS,), NOW)
    assert row.message == "is removed after 2026-01-01T00:10:00Z"
    (warning,) = first.notices
    assert (warning.reason, warning.is_warning) == ("LimitWithoutOwner", True)
    assert warning.message == (
        "the limit of 5000 bytes a second that PartitionReassignment shop/move has set slows replicas of orders, and that "
        "object is gone: the limit is removed after 2026-01-01T00:10:00Z. To remove it now: kontroller reassign limits "
        "--remove shop/move/uid-1"
    )
    assert (first.steps, first.look_again_in_s) == ((), REMOVED_AFTER.total_seconds())
    again = look(first.rows, after=timedelta(minutes=9))
    assert (again.rows, again.steps, again.notices) == (first.rows, (), ())
    due = look(first.rows, after=REMOVED_AFTER)
    assert (due.steps, due.notices) == ((REMOVE,), ())
    done = look(first.rows, after=REMOVED_AFTER, done=(REMOVE,))
    assert (done.rows, done.steps, [each.reason for each in done.notices]) == ((), (), ["LimitRemoved"])


def test_it_stays_while_a_partition_of_it_moves() -> None:
    first = look(cluster=MOVING)
    late = look(first.rows, cluster=MOVING, after=timedelta(days=1))
    assert late.steps == ()
    assert late.rows[0].message == "stays while orders-0 of it moves"
    assert look(late.rows, after=timedelta(days=1)).steps == (REMOVE,)


def test_it_stays_while_a_configuration_is_hidden_that_may_name_it() -> None:
    hidden = view(*QUIET.topics.values(), replace(healthy([1], name="hidden"), is_config_known=False))
    late = look(look().rows, cluster=hidden, after=timedelta(days=1))
    assert late.steps == ()
    assert late.rows[0].message.endswith("do not tell the operator the configuration of hidden")


def test_what_keeps_it_from_being_removed_is_said_and_it_is_tried_at_the_next_look() -> None:
    reply = ThrottleReply(step=REMOVE, trouble="the controllers have no leader")
    failed = look(look().rows, after=REMOVED_AFTER, throttles=(reply,))
    assert (failed.steps, failed.rows[0].message) == ((), "cannot be removed: the controllers have no leader")
    assert look(failed.rows, after=REMOVED_AFTER).steps == (REMOVE,)


def test_nothing_changes_while_nobody_says_which_limits_there_are() -> None:
    rows = look().rows
    unknown = look(rows, None, after=timedelta(days=1))
    assert (unknown.rows, unknown.steps, unknown.notices) == (rows, (), ())


def test_a_limit_that_somebody_else_has_removed_is_not_shown_any_more() -> None:
    assert look(look().rows, LIMITS[1:]) == LimitsPlan(rows=())


def test_a_warning_of_a_wrong_clock_does_not_delay_it() -> None:
    future = [row.model_copy(update={"since": NOW + timedelta(days=1)}) for row in look().rows]
    (row,) = look(future).rows
    assert row.since == NOW
