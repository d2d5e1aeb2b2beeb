"""The rest of a move is only said if all of it is known, and a time only if it gets less."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest

from controller_core.client.log_dirs.copy_sizes import Reading, questions, take_reading
from controller_core.client.log_dirs.log_sizes import Copies, Copy, LogSizes
from controller_core.model.ids import NO_LEADER, BrokerId, PartitionId, TopicPartition
from controller_operator.plans.outcome import Context
from controller_operator.plans.reassignment.copying.progress import add_latest, progress
from controller_operator.plans.reassignment.planner import decide
from controller_operator.plans.timing.durations import format_duration
from controller_operator.resources.reassignment import MoveProgress, ReassignmentPhase
from tests.unit.operator.clusters import NOW, ORDERS, assign, healthy, lead, reassignment, status_of, topic, view

LOOK = Context(now=NOW)
SEEN = MoveProgress(bytes_left=70, bytes_per_second=7, time_left="10s", estimated_completion_time=NOW)
MOVING = assign([4, 5, 1, 2], [4, 5], [1, 2])
TARGETS: Mapping[int, Sequence[int]] = {0: [4, 5], 1: [4, 5]}


def make_reading(number: int) -> TopicPartition:
    return TopicPartition(ORDERS, PartitionId(number))


def read_copied(leader: int, *to: int, has_begun: bool = True) -> Copy:
    return Copy(leader=BrokerId(leader), to=tuple(map(BrokerId, to)), has_begun=has_begun)


def sizes(bytes_of: Mapping[int, int], *, are_all_seen: bool = True) -> LogSizes:
    return LogSizes(
        bytes_of={make_reading(number): size for number, size in bytes_of.items()}, are_all_seen=are_all_seen
    )


def read_left(wanted: Copies, answers: Mapping[int, LogSizes]) -> dict[TopicPartition, int] | None:
    found = take_reading(wanted, {BrokerId(number): answer for number, answer in answers.items()}, 0.0)
    return dict(found.bytes_left) if found.is_complete else None


def read(at_s: float, *bytes_left: int) -> Reading:
    return Reading(at_s=at_s, bytes_left={make_reading(number): size for number, size in enumerate(bytes_left)})


class TestBytesLeft:
    def test_they_are_what_the_leader_has_and_each_new_replica_has_not(self) -> None:
        answers = {1: sizes({0: 1000}), 4: sizes({0: 300}), 5: sizes({0: 950})}
        assert read_left({make_reading(0): read_copied(1, 4, 5)}, answers) == {make_reading(0): 750}

    def test_a_replica_that_is_larger_than_its_leader_has_nothing_left(self) -> None:
        answers = {1: sizes({0: 1000}), 4: sizes({0: 1500}), 5: sizes({0: 900})}
        assert read_left({make_reading(0): read_copied(1, 4, 5)}, answers) == {make_reading(0): 100}

    def test_a_replica_without_a_log_has_all_of_it_left(self) -> None:
        assert read_left({make_reading(0): read_copied(1, 4)}, {1: sizes({0: 1000}), 4: sizes({})}) == {
            make_reading(0): 1000
        }

    def test_what_is_in_sync_has_nothing_left_and_nobody_is_asked_for_it(self) -> None:
        wanted = {make_reading(0): read_copied(1), make_reading(1): read_copied(2, 4)}
        assert questions(wanted) == {2: [make_reading(1)], 4: [make_reading(1)]}
        assert read_left(wanted, {2: sizes({1: 10}), 4: sizes({1: 3})}) == {make_reading(0): 0, make_reading(1): 7}

    @pytest.mark.parametrize(
        "answers",
        [
            {},
            {1: sizes({0: 1000})},
            {4: sizes({0: 300})},
            {1: sizes({}), 4: sizes({0: 300})},
            {1: sizes({0: 1000}), 4: sizes({}, are_all_seen=False)},
        ],
        ids=["nobody answers", "the new one is silent", "the leader is silent", "the leader has none", "a disk failed"],
    )
    def test_nothing_is_said_where_anything_is_not_known(self, answers: dict[int, LogSizes]) -> None:
        assert read_left({make_reading(0): read_copied(1, 4), make_reading(1): read_copied(9)}, answers) is None

    def test_a_failed_directory_is_no_matter_where_the_replica_is_in_another_one(self) -> None:
        answers = {1: sizes({0: 1000}, are_all_seen=False), 4: sizes({0: 400}, are_all_seen=False)}
        assert read_left({make_reading(0): read_copied(1, 4)}, answers) == {make_reading(0): 600}


class TestFigures:
    def test_the_first_reading_has_no_rate(self) -> None:
        assert progress([read(5.0, 1_234_567)], NOW) == MoveProgress(bytes_left=1_230_000)

    def test_two_readings_have_a_rate_and_a_time(self) -> None:
        found = progress([read(100.0, 900_000, 100_000), read(110.0, 590_000, 100_000)], NOW)
        assert found == MoveProgress(
            bytes_left=690_000,
            bytes_per_second=31_000,
            time_left="30s",
            estimated_completion_time=NOW + timedelta(minutes=1),
        )

    @pytest.mark.parametrize("later", [1000, 1010, 5000])
    def test_what_does_not_get_less_has_a_rate_of_nothing_and_no_time(self, later: int) -> None:
        found = progress([read(0.0, 1000), read(10.0, later)], NOW)
        assert found == MoveProgress(bytes_left=later, bytes_per_second=0)

    def test_what_is_all_copied_needs_no_time(self) -> None:
        assert progress([read(0.0, 1000), read(10.0, 0)], NOW) == MoveProgress(bytes_left=0, bytes_per_second=100)

    @pytest.mark.parametrize("at_s", [10.0, 9.0], ids=["stands still", "goes back"])
    def test_a_clock_that_does_not_go_on_gives_no_rate(self, at_s: float) -> None:
        assert progress([read(10.0, 1000), read(at_s, 500)], NOW) == MoveProgress(bytes_left=500)

    def test_a_partition_that_is_gone_was_not_copied(self) -> None:
        found = progress([read(0.0, 1000, 10**9), read(10.0, 900)], NOW)
        assert found is not None
        assert found.bytes_per_second == 10

    def test_a_partition_that_is_new_takes_nothing_off_the_rate(self) -> None:
        found = progress([read(0.0, 1000), read(10.0, 900, 10**9)], NOW)
        assert found is not None
        assert found.bytes_per_second == 10

    def test_a_sum_that_no_status_can_hold_is_not_said(self) -> None:
        assert progress([read(0.0, 2**63 - 1, 1)], NOW) is None
        assert progress([read(0.0, 2**62)], NOW) is not None

    def test_a_time_of_more_than_a_year_is_none(self) -> None:
        found = progress([read(0.0, 2**62), read(10.0, 2**62 - 10_000)], NOW)
        assert found is not None
        assert (found.bytes_per_second, found.time_left, found.estimated_completion_time) == (1000, None, None)

    def test_nothing_was_read(self) -> None:
        assert progress([], NOW) is None

    def test_readings_are_kept_for_half_a_minute(self) -> None:
        readings: tuple[Reading, ...] = ()
        for number in range(10):
            readings = add_latest(readings, read(10.0 * number, number))
        assert [each.at_s for each in readings] == [60.0, 70.0, 80.0, 90.0]

    def test_readings_of_a_clock_that_went_back_count_no_more(self) -> None:
        assert add_latest((read(100.0, 1),), read(50.0, 2)) == (read(50.0, 2),)

    @pytest.mark.parametrize(
        ("seconds", "words"),
        [
            (0.1, "10s"), (10, "10s"), (11, "20s"), (59, "1m"), (61, "1m10s"), (3599, "1h"), (7_800, "2h10m"),
            (86_400, "1d"), (90_061, "1d1h"), (365 * 86_400, "365d"),
        ],
    )  # fmt: skip
    def test_a_time_is_told_by_its_two_largest_units(self, seconds: float, words: str) -> None:
        assert format_duration(timedelta(seconds=seconds)) == words


class TestStatus:
    def test_a_move_that_runs_shows_what_is_known_and_says_what_to_measure(self) -> None:
        status = status_of(decide(reassignment(TARGETS), view(healthy([1, 2], [1, 2])), LOOK))
        now = view(topic((MOVING, lead(1, [1, 2, 4])), (assign([1, 2]), lead(2, [1, 2]))))
        plan = decide(reassignment(TARGETS, status=status), now, Context(now=NOW, progress=SEEN))
        assert plan.status.progress == SEEN
        assert plan.copies == {
            make_reading(0): read_copied(1, 5),
            make_reading(1): read_copied(2, 4, 5, has_begun=False),
        }

    def test_what_waits_counts_but_not_while_nothing_may_begin(self) -> None:
        status = status_of(decide(reassignment(TARGETS), view(healthy([1, 2], [1, 2])), LOOK))
        now = view(topic((MOVING, lead(1, [1, 2])), (assign([1, 2]), lead(1, [1, 2]))))
        plan = decide(reassignment(TARGETS, {"suspend": True}, status=status), now, LOOK)
        assert plan.status.phase is ReassignmentPhase.SUSPENDED
        assert plan.copies == {make_reading(0): read_copied(1, 4, 5)}

    def test_a_partition_without_a_leader_has_nobody_to_copy_from(self) -> None:
        status = status_of(decide(reassignment({0: [4, 5]}), view(healthy([1, 2])), LOOK))
        plan = decide(reassignment({0: [4, 5]}, status=status), view(topic((MOVING, lead(-1, [1])))), LOOK)
        assert plan.copies == {make_reading(0): read_copied(NO_LEADER, 4, 5)}

    def test_a_move_that_has_not_begun_or_has_ended_shows_and_measures_nothing(self) -> None:
        known = Context(now=NOW, progress=SEEN)
        waiting = decide(reassignment(TARGETS, {"suspend": True}), view(healthy([1, 2], [1, 2])), known)
        assert (waiting.status.progress, waiting.copies) == (None, None)
        status = status_of(decide(reassignment(TARGETS), view(healthy([1, 2], [1, 2])), known))
        done = decide(reassignment(TARGETS, status=status), view(healthy([4, 5], [4, 5])), known)
        assert done.status.phase is ReassignmentPhase.COMPLETED
        assert (done.status.progress, done.copies) == (None, None)

    def test_a_move_that_is_taken_back_shows_it_no_more(self) -> None:
        status = status_of(decide(reassignment({0: [4, 5]}), view(healthy([1, 2])), LOOK))
        running = reassignment(
            {0: [4, 5]},
            status={**status, "progress": SEEN.model_dump(by_alias=True, mode="json")},
            deletionTimestamp="2026-01-01T00:00:00Z",
            finalizers=["kontroller.dev/finalizer"],
        )
        fresh = Context(now=NOW, progress=SEEN, is_view_fresh=True)
        plan = decide(running, view(topic((MOVING, lead(1, [1, 2])))), fresh)
        assert plan.steps
        assert plan.status.progress is None
