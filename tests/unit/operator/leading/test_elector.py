"""Leader election: at most one leader at any time, and a new one soon, with any clocks, other writers and lost
answers."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_operator.kubernetes.object_api import ApiForbidden, ApiUnavailable, ObjectChanged
from controller_operator.leading.elector import Elector, LeaseTimes
from controller_operator.leading.leadership import NotLeading
from controller_operator.leading.lease import NOBODY
from tests.unit.operator.leading.simulated_lease import SimulatedLease

DURATION_S = 10
RENEW_DEADLINE_S = 6.0


@dataclass
class Process:
    """A process that wants to lead, with a clock of its own."""

    lease: SimulatedLease
    name: str
    duration_s: int = DURATION_S
    clock_s: float = 1000.0
    wall_clock: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    elector: Elector = field(init=False)

    def __post_init__(self) -> None:
        times = LeaseTimes(duration_s=self.duration_s)
        self.elector = Elector(self.lease, self.name, times, now=lambda: self.wall_clock, clock_s=lambda: self.clock_s)

    @property
    def may_write(self) -> bool:
        try:
            self.elector.require()
        except NotLeading:
            return False
        return True


@dataclass
class Two:
    """Two of them, and time that goes by for both."""

    lease: SimulatedLease = field(default_factory=SimulatedLease)
    first: Process = field(init=False)
    second: Process = field(init=False)

    def __post_init__(self) -> None:
        self.first = Process(self.lease, "first")
        self.second = Process(self.lease, "second", clock_s=5.0)

    def wait(self, seconds: float) -> None:
        for process in (self.first, self.second):
            process.clock_s += seconds


@pytest.fixture
def two() -> Two:
    return Two()


async def test_the_first_one_leads_and_the_other_waits(two: Two) -> None:
    assert await two.first.elector.try_to_acquire()
    assert not await two.second.elector.try_to_acquire()
    assert two.first.may_write
    assert not two.second.may_write


async def test_a_leader_that_renews_keeps_the_lease_for_as_long_as_it_likes(two: Two) -> None:
    await two.first.elector.try_to_acquire()
    for _ in range(20):
        two.wait(5)
        assert await two.first.elector.renew()
        assert not await two.second.elector.try_to_acquire()
        assert two.first.may_write


async def test_a_leader_that_is_stopped_is_followed_and_may_not_write_when_it_wakes(two: Two) -> None:
    await two.first.elector.try_to_acquire()
    assert not await two.second.elector.try_to_acquire()
    two.wait(DURATION_S)
    assert not two.first.may_write
    assert await two.second.elector.try_to_acquire()
    assert two.second.may_write
    with pytest.raises(NotLeading, match="second has the lease now"):
        await two.first.elector.renew()
    assert two.second.may_write


async def test_a_leader_stops_to_write_before_another_can_begin(two: Two) -> None:
    await two.first.elector.try_to_acquire()
    await two.second.elector.try_to_acquire()
    two.wait(RENEW_DEADLINE_S)
    assert not two.first.may_write
    two.wait(DURATION_S - RENEW_DEADLINE_S - 0.01)
    assert not await two.second.elector.try_to_acquire()


async def test_who_has_just_come_waits_as_long_as_who_was_there_all_the_time(two: Two) -> None:
    """The times in the lease are those of another clock: it may have been renewed just now."""
    await two.first.elector.try_to_acquire()
    two.first.wall_clock -= timedelta(days=365)
    two.wait(DURATION_S * 3)
    assert not await two.second.elector.try_to_acquire()
    two.wait(DURATION_S)
    assert await two.second.elector.try_to_acquire()


@pytest.mark.parametrize("ahead", [timedelta(days=365), -timedelta(days=365)])
async def test_wall_clocks_decide_nothing(two: Two, ahead: timedelta) -> None:
    two.second.wall_clock += ahead
    await two.first.elector.try_to_acquire()
    for _ in range(5):
        assert not await two.second.elector.try_to_acquire()
        two.wait(DURATION_S / 2)
        await two.first.elector.renew()
    assert two.first.may_write


async def test_a_leader_whose_wall_clock_stands_still_is_seen_to_live(two: Two) -> None:
    await two.first.elector.try_to_acquire()
    for _ in range(5):
        two.wait(DURATION_S / 2)
        await two.first.elector.renew()
        assert not await two.second.elector.try_to_acquire()


async def test_a_lease_that_was_given_back_is_taken_at_once(two: Two) -> None:
    await two.first.elector.try_to_acquire()
    assert not await two.second.elector.try_to_acquire()
    await two.first.elector.release()
    assert not two.first.may_write
    assert await two.second.elector.try_to_acquire()


async def test_who_lost_the_lease_does_not_give_back_that_of_another(two: Two) -> None:
    await two.first.elector.try_to_acquire()
    await two.second.elector.try_to_acquire()
    two.wait(DURATION_S)
    await two.second.elector.try_to_acquire()
    await two.first.elector.release()
    assert two.lease.lease is not None
    assert two.lease.lease.claim.holder == "second"


async def test_a_process_that_begins_anew_under_its_name_need_not_wait_for_itself(two: Two) -> None:
    await two.first.elector.try_to_acquire()
    again = Process(two.lease, "first")
    assert await again.elector.try_to_acquire()
    with pytest.raises(NotLeading):
        await two.first.elector.renew()


async def test_a_label_on_the_lease_costs_the_leader_nothing(two: Two) -> None:
    await two.first.elector.try_to_acquire()
    two.lease.label()
    two.wait(1)
    assert not await two.first.elector.renew()
    assert await two.first.elector.renew()
    assert two.first.may_write


async def test_a_renewal_whose_answer_was_lost_is_no_loss(two: Two) -> None:
    await two.first.elector.try_to_acquire()
    two.wait(3)
    two.lease.loses_next_answer = True
    with pytest.raises(ApiUnavailable):
        await two.first.elector.renew()
    assert not await two.first.elector.renew()
    assert await two.first.elector.renew()
    two.wait(RENEW_DEADLINE_S - 1)
    assert two.first.may_write


async def test_a_deleted_lease_ends_the_leader_before_another_makes_one(two: Two) -> None:
    await two.first.elector.try_to_acquire()
    assert not await two.second.elector.try_to_acquire()
    two.lease.lease = None
    assert not await two.second.elector.try_to_acquire(), "its holder need not know"
    with pytest.raises(NotLeading, match="deleted"):
        await two.first.elector.renew()
    assert not two.first.may_write
    two.wait(DURATION_S)
    assert await two.second.elector.try_to_acquire()


async def test_of_two_that_begin_at_once_one_leads(two: Two) -> None:
    two.lease.before_next_write = two.first.elector.try_to_acquire
    with pytest.raises(ObjectChanged):
        await two.second.elector.try_to_acquire()
    assert (two.first.may_write, two.second.may_write) == (True, False)


async def test_of_two_that_see_the_end_of_a_lease_one_takes_it(two: Two) -> None:
    third = Process(two.lease, "third")
    await third.elector.try_to_acquire()
    await two.first.elector.try_to_acquire()
    await two.second.elector.try_to_acquire()
    two.wait(DURATION_S)
    two.lease.before_next_write = two.first.elector.try_to_acquire
    with pytest.raises(ObjectChanged):
        await two.second.elector.try_to_acquire()
    assert (two.first.may_write, two.second.may_write) == (True, False)


async def test_confirmed_by_the_lease_or_not_at_all(two: Two) -> None:
    await two.first.elector.try_to_acquire()
    two.lease.label()
    await two.first.elector.confirm()
    two.lease.refuses = ApiUnavailable("nobody answers")
    with pytest.raises(NotLeading, match="does not say"):
        await two.first.elector.confirm()
    two.lease.refuses = None
    await two.second.elector.try_to_acquire()
    two.wait(DURATION_S)
    await two.second.elector.try_to_acquire()
    with pytest.raises(NotLeading, match="second"):
        await two.first.elector.confirm()


@pytest.mark.parametrize("duration_s", [0, 1, (1 << 31) - 1])
async def test_a_duration_that_nobody_means_neither_hurries_nor_stops_anybody(two: Two, duration_s: int) -> None:
    await two.first.elector.try_to_acquire()
    lease = two.lease.lease
    assert lease is not None
    two.lease.lease = replace(lease, claim=replace(lease.claim, duration_s=duration_s))
    assert not await two.second.elector.try_to_acquire()
    two.wait(DURATION_S - 1)
    assert not await two.second.elector.try_to_acquire()
    two.wait(300)
    assert await two.second.elector.try_to_acquire()


async def test_the_count_of_holders_ends_where_its_type_does(two: Two) -> None:
    await two.first.elector.try_to_acquire()
    lease = two.lease.lease
    assert lease is not None
    two.lease.lease = replace(lease, claim=replace(lease.claim, holder=NOBODY, transitions=(1 << 31) - 1))
    assert await two.second.elector.try_to_acquire()
    assert two.lease.lease.claim.transitions == 0


async def test_missing_rights_are_said_at_once(two: Two) -> None:
    two.lease.refuses = ApiForbidden("403 leases.coordination.k8s.io")
    with pytest.raises(ApiForbidden):
        await two.first.elector.acquire()


async def test_an_api_server_that_is_away_is_waited_for_and_said_to_be_the_trouble() -> None:
    process = Process(SimulatedLease(refuses=ApiUnavailable("nobody answers")), "first", duration_s=0)
    acquiring = asyncio.create_task(process.elector.acquire())
    while process.elector.trouble is None:  # noqa: ASYNC110 - it is a property, as a probe asks for it
        await asyncio.sleep(0)
    assert "nobody answers" in process.elector.trouble
    process.lease.refuses = None
    await acquiring
    assert process.elector.trouble is None


STEPS = st.lists(
    st.tuples(st.sampled_from(["first", "second", "wait", "label", "lose an answer"]), st.floats(0, 12)),
    max_size=60,
)


@given(STEPS)
async def test_never_do_two_lead(steps: list[tuple[str, float]]) -> None:
    """This holds for events in any order, and even if one elector does not get to run for long."""
    two = Two()
    for what, seconds in steps:
        await _step(two, what, seconds)
        assert not (two.first.may_write and two.second.may_write)


async def _step(two: Two, what: str, seconds: float) -> None:
    match what:
        case "wait":
            two.wait(seconds)
        case "label" if two.lease.lease is not None:
            two.lease.label()
        case "lose an answer":
            two.lease.loses_next_answer = True
        case "first" | "second":
            process = two.first if what == "first" else two.second
            act = process.elector.renew if process.may_write else process.elector.try_to_acquire
            try:
                await act()
            except (ApiUnavailable, ObjectChanged, NotLeading):
                return
