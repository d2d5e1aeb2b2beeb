"""The journals that are one account, and the times in which an account knows the state, from the few records that
matter."""

from collections.abc import Iterator

from kontroller.history.transforms.accounts.agreement import Journal, group_journals
from kontroller.history.transforms.accounts.choice import Known, Snapshot
from kontroller.history.transforms.accounts.stretches import Mark, account_of

SECOND_US = 1_000_000


def make_marks(*records: tuple[int, int, str], origin: str = "recorder") -> Iterator[Mark]:
    """Number, second and kind of each record; all are marks."""
    before: tuple[int, int] | None = None
    for seq, second, kind in records:
        yield Mark("a", origin, 60 * SECOND_US, seq, second * SECOND_US, kind, seq, *(before or (None, None)))
        before = seq, second * SECOND_US


def spans(*records: tuple[int, int, str], origin: str = "recorder") -> list[tuple[int, int, int, int, int]]:
    found = account_of("a", [*make_marks(*records, origin=origin)][::-1]).spans
    return [
        (span.first_seq, span.snapshot_seq, span.last_seq, span.began_us // SECOND_US, span.ended_us // SECOND_US)
        for span in found
    ]


SNAPSHOT = [(1, 0, "snapshot_started"), (2, 1, "snapshot_ended")]


def test_the_state_is_known_from_the_end_of_a_snapshot_to_the_last_record() -> None:
    assert spans((0, 0, "recorder_started"), *SNAPSHOT, (3, 50, "controller_alive")) == [(1, 2, 3, 1, 50)]
    assert spans((0, 0, "controller_alive"), (1, 50, "controller_alive")) == []


def test_a_missing_record_ends_it_until_the_next_snapshot() -> None:
    again = [(9, 40, "snapshot_started"), (10, 41, "snapshot_ended"), (11, 60, "leadership")]
    assert spans(*SNAPSHOT, (3, 20, "leadership"), (5, 30, "leadership"), *again) == [
        (1, 2, 3, 1, 20),
        (9, 10, 11, 41, 60),
    ]
    assert spans(*SNAPSHOT, (3, 20, "gap"), *again) == [(1, 2, 2, 1, 1), (9, 10, 11, 41, 60)]


def test_a_snapshot_that_lost_a_record_is_none() -> None:
    assert spans((1, 0, "snapshot_started"), (3, 1, "snapshot_ended"), (4, 9, "leadership")) == []


def test_the_state_goes_on_behind_a_silence_and_the_silence_is_not_known() -> None:
    assert spans(*SNAPSHOT, (3, 500, "leadership"), (4, 510, "leadership")) == [(1, 2, 2, 1, 1), (3, 2, 4, 500, 510)]


def test_logs_are_known_from_their_first_record_on_and_may_be_silent() -> None:
    assert spans((0, 5, "leadership"), (1, 5000, "leadership"), origin="logs") == [(0, 0, 1, 5, 5000)]


def test_a_record_that_comes_twice_is_one() -> None:
    assert spans(*SNAPSHOT, (2, 1, "snapshot_ended"), (3, 9, "leadership"), (3, 9, "leadership")) == [(1, 2, 3, 1, 9)]


def test_an_account_has_its_snapshots_and_its_trust() -> None:
    account = account_of("a", make_marks(*SNAPSHOT, (3, 9, "snapshot_started"), (4, 9, "snapshot_ended")))
    assert account.snapshots == [Snapshot(1, 0), Snapshot(3, 9 * SECOND_US)]
    assert account.spans == [Known(1, 2, 4, SECOND_US, 9 * SECOND_US)]
    assert account.trust == 1


def journal(name: str, *contradicts: str, of: int | None = 1, records: int = 10) -> Journal:
    return Journal(name, "recorder" if of is None else "controller", of, records, [*contradicts])


def test_copies_and_parts_are_one_account_which_is_nothing_to_choose_from() -> None:
    assert group_journals([journal("a"), journal("b"), journal("c", records=2)]) == {}


def test_writers_have_accounts_of_their_own_whatever_their_numbers_are() -> None:
    assert group_journals([journal("a", of=1), journal("b", of=2), journal("c", of=None)]) == {
        "a": "a",
        "b": "b",
        "c": "c",
    }


def test_a_journal_belongs_to_the_largest_account_that_it_contradicts_nowhere() -> None:
    journals = [journal("a", "b", records=9), journal("b", "a", records=8), journal("c", "a", records=5), journal("d")]
    assert group_journals(journals) == group_journals(journals[::-1]) == {"d": "d", "a": "d", "b": "b", "c": "b"}
