"""A limit whose object is gone is removed, and tried again if that fails."""

from datetime import timedelta

from controller_operator.kafka.throttle_steps import RemoveThrottle, ThrottleReply
from controller_operator.plans.outcome import Context
from controller_operator.plans.upkeep.ownerless_limits import LimitsPlan, plan_ownerless_limits
from tests.unit.operator.clusters import NOW

GONE, OTHER = "shop/move/uid-1", "shop/other/uid-2"
REMOVE = RemoveThrottle(owner=GONE)


def look(*ownerless: str, replies: tuple[ThrottleReply, ...] = ()) -> LimitsPlan:
    return plan_ownerless_limits(ownerless, Context(now=NOW + timedelta(), throttles=replies))


def test_each_limit_without_an_object_is_removed() -> None:
    assert look(OTHER, GONE) == LimitsPlan(steps=(REMOVE, RemoveThrottle(owner=OTHER)))
    assert look() == LimitsPlan()


def test_its_removal_is_said() -> None:
    done = look(replies=(ThrottleReply(step=REMOVE),))
    (notice,) = done.notices
    assert (done.steps, notice.reason, notice.is_warning) == ((), "LimitRemoved", False)
    assert notice.message == "the limit of PartitionReassignment shop/move, which is gone, is removed"


def test_what_keeps_it_from_being_removed_is_said_and_it_is_tried_at_the_next_look() -> None:
    failed = look(GONE, replies=(ThrottleReply(step=REMOVE, trouble="the controllers have no leader"),))
    (notice,) = failed.notices
    assert (failed.steps, notice.reason, notice.is_warning) == ((), "LimitStays", True)
    assert notice.message.endswith("cannot be removed: the controllers have no leader")
    assert look(GONE).steps == (REMOVE,)
