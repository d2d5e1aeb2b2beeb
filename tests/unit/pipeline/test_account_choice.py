"""The choice among several accounts of an epoch, in minutes and without Spark."""

from collections.abc import Sequence

from kontroller.history.transforms.accounts.choice import (
    ALWAYS_US,
    Account,
    Known,
    Snapshot,
    choose_pieces,
    rank_accounts,
)

MINUTE_US = 60_000_000
HOUR = 60
CONTROLLER, RECORDER = 0, 1
Span = tuple[int, int]


def account(
    name: str, *spans: Span, trust: int = RECORDER, snapshots: Sequence[int] = (), goes_on: bool = False
) -> Account:
    """Return an account with one record a minute, numbered by its minute. Each span begins with a snapshot. If the
    state `goes_on`, only the first span does."""
    starts = spans[:1] if goes_on else spans
    first = [began for began, _ in starts]
    snapshot = {span: first[0] if goes_on else span[0] for span in spans}
    return Account(
        name=name,
        trust=trust,
        spans=[Known(span[0], snapshot[span], span[1], span[0] * MINUTE_US, span[1] * MINUTE_US) for span in spans],
        snapshots=[Snapshot(minute, minute * MINUTE_US) for minute in sorted([*first, *snapshots])],
    )


def list_taken(*accounts: Account) -> list[tuple[int, str, int, int]]:
    """Part, account, and from when until when it is known."""
    assert choose_pieces(accounts) == choose_pieces(accounts[::-1])
    return [(p.part, p.account, p.began_us // MINUTE_US, p.ended_us // MINUTE_US) for p in choose_pieces(accounts)]


def test_all_of_one_account_is_taken_in_one_part() -> None:
    only = account("a", (5, 30), (60, 90))
    assert list_taken(only) == [(0, "a", 5, 30), (0, "a", 60, 90)]
    assert [(piece.first_seq, piece.last_seq, piece.until_us) for piece in choose_pieces([only])] == [
        (0, 30, ALWAYS_US), (31, 2**63 - 1, ALWAYS_US),
    ]  # fmt: skip


def test_a_minute_of_a_controller_is_less_than_a_day_of_a_recorder() -> None:
    own, seen = account("own", (100, 101), trust=CONTROLLER), account("seen", (0, 24 * HOUR))
    assert rank_accounts([own, seen])[0].name == "seen"
    assert list_taken(own, seen) == [(0, "seen", 0, 24 * HOUR)]


def test_a_controller_is_taken_where_a_recorder_covers_about_as_much() -> None:
    own, seen = account("own", (1, 10 * HOUR), trust=CONTROLLER), account("seen", (0, 10 * HOUR + 1))
    assert [piece[1] for piece in list_taken(own, seen)][:2] == ["seen", "own"]
    assert rank_accounts([own, seen])[0].name == "own"


def test_what_begins_and_ends_a_moment_apart_is_not_filled() -> None:
    own = Account("own", CONTROLLER, [Known(4, 6, 90, 7_000_000, 500_000_000)], [Snapshot(4, 6_000_000)])
    seen = Account("seen", RECORDER, [Known(4, 6, 90, 1_000_000, 510_000_000)], [Snapshot(4, 1_000_000)])
    assert [piece.account for piece in choose_pieces([own, seen])] == ["own"]


def test_recorders_one_after_the_other_are_both_taken_whole() -> None:
    first, second = account("first", (0, 3 * HOUR)), account("second", (200, 300))
    assert list_taken(first, second) == [(0, "first", 0, 180), (1, "second", 200, 300)]
    assert [piece.first_seq for piece in choose_pieces([first, second])] == [0, 0]


def test_the_time_before_and_after_the_best_account_is_filled() -> None:
    own = account("own", (0, 4 * HOUR), trust=CONTROLLER, snapshots=(60, 120, 180))
    seen = account("seen", (HOUR, 8 * HOUR))
    after = account("after", (490, 600))
    assert list_taken(own, seen, after) == [(0, "own", 0, 60), (1, "seen", 60, 480), (2, "after", 490, 600)]
    assert choose_pieces([own, seen, after])[0].until_us == HOUR * MINUTE_US


def test_what_begins_in_covered_time_is_taken_from_a_snapshot_after_it() -> None:
    longest = account("longest", (0, 300))
    assert list_taken(longest, account("late", (200, 400), snapshots=(260, 320, 380))) == [
        (0, "longest", 0, 300), (1, "late", 320, 400),
    ]  # fmt: skip
    assert list_taken(longest, account("late", (200, 400), snapshots=(260,))) == [(0, "longest", 0, 300)]


def test_a_gap_is_filled_and_the_best_goes_on_after_it() -> None:
    best = account("best", (0, 300), (400, 700))
    assert list_taken(best, account("other", (310, 390))) == [
        (0, "best", 0, 300),
        (1, "other", 310, 390),
        (2, "best", 400, 700),
    ]


def test_a_silence_is_not_filled_where_more_would_be_forgotten_than_is_gained() -> None:
    best = account("best", (0, 300), (320, 700), goes_on=True, snapshots=(350,))
    assert {piece[1] for piece in list_taken(best, account("other", (301, 319)))} == {"best"}
    best = account("best", (0, 300), (320, 700), goes_on=True, snapshots=(330,))
    assert [piece[1] for piece in list_taken(best, account("other", (301, 319)))] == ["best", "other", "best"]


def test_what_fills_goes_on_over_its_own_silence() -> None:
    best, other = account("best", (0, 300)), account("other", (400, 450), (460, 500), goes_on=True)
    assert list_taken(best, other) == [(0, "best", 0, 300), (1, "other", 400, 450), (1, "other", 460, 500)]


def test_accounts_that_know_nothing_are_taken_by_trust() -> None:
    assert [piece.account for piece in choose_pieces([account("a"), account("b", trust=CONTROLLER)])] == ["b"]
