"""Selects the parts of an epoch's accounts: the whole best account, and parts of others for the time that it does not
cover.

An example: a controller's journal covers some hours, and a recorder without a disk of its own was restarted.
    controller     [10:00 ----------- 14:00]
    recorder A          [11:00 ---------------------- 18:00]
    recorder B                                                [18:10 ---------- 22:00]

Recorder A covers seven hours and is used as a whole, then the controller's first hour and all of recorder B. The parts
follow each other in time and are counted from 0. Each is known from its first snapshot on.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import Final, NamedTuple

ABOUT_AS_MUCH: Final = 0.9
"""An account is as good as the best one if it covers at least this share of its time."""
WORTH_FILLING_US: Final = 60_000_000
"""The shortest time that is worth filling, because two accounts never begin and end at the same moment."""
ALWAYS_US: Final = 2**63 - 1
_LAST: Final = 2**63 - 1


class Known(NamedTuple):
    """An uninterrupted time in which an account knows the state. Times are microseconds since 1970."""

    first_seq: int
    snapshot_seq: int
    """It is before `first_seq` if the state of the previous span continues."""
    last_seq: int
    began_us: int
    ended_us: int


class Snapshot(NamedTuple):
    seq: int
    time_us: int


class Account(NamedTuple):
    name: str
    trust: int
    """The rank of trust; 0 is the highest."""
    spans: Sequence[Known]
    """In their order, as are the snapshots."""
    snapshots: Sequence[Snapshot]

    @property
    def covered_us(self) -> int:
        return sum(span.ended_us - span.began_us for span in self.spans)


class Piece(NamedTuple):
    """Records of an account that are used: these numbers, if their time is before `until_us`."""

    account: str
    first_seq: int
    last_seq: int
    until_us: int
    began_us: int
    ended_us: int
    lost_us: int
    """The time for which its state would be unknown if another account came before it."""
    part: int = 0


def choose_pieces(accounts: Sequence[Account]) -> list[Piece]:
    """Return the pieces of all accounts of one epoch that are used, in the order of time."""
    first, *others = rank_accounts(accounts)
    taken = [*_all_of(first)]
    for account in others:
        filling = [*_separate(_fill(account, taken))]
        taken = sorted([*taken, *filling], key=lambda piece: (piece.began_us, piece.first_seq))
    return [*_number_parts(taken)]


def rank_accounts(accounts: Sequence[Account]) -> list[Account]:
    """Sort the accounts: the largest coverage first. Among those with about the largest, the most trusted is first."""
    longest_us = max(account.covered_us for account in accounts)

    def rank(account: Account) -> tuple[object, ...]:
        is_shorter = account.covered_us < ABOUT_AS_MUCH * longest_us
        return is_shorter, account.trust, -account.covered_us, account.name

    return sorted(accounts, key=rank)


def _all_of(account: Account) -> Iterator[Piece]:
    """Return all records of an account, as pieces that end with its known spans."""
    ends = [-1, *(span.last_seq for span in account.spans[:-1]), _LAST]
    spans = account.spans or [Known(0, 0, 0, 0, 0)]
    for span, (before, last_seq) in zip(spans, pairwise(ends), strict=True):
        again_us = span.began_us if _has_snapshot(span) else _find_snapshot(account, span, span.began_us)[1]
        yield Piece(
            account.name, before + 1, last_seq, ALWAYS_US, span.began_us, span.ended_us, again_us - span.began_us
        )


def _fill(account: Account, taken: Sequence[Piece]) -> Iterator[Piece]:
    """Return pieces for uncovered time. Each begins with a snapshot, and gains more known time than it costs."""
    before, known_until_us = -1, -ALWAYS_US
    for span in account.spans:
        for free_from_us, free_until_us, lost_us in _free(taken):
            is_known = _has_snapshot(span) or known_until_us >= free_from_us
            began = Snapshot(before + 1, span.began_us)
            if span.began_us < free_from_us or not is_known:
                began = _find_snapshot(account, span, max(span.began_us, free_from_us))
            ended_us = min(span.ended_us, free_until_us)
            if ended_us - began.time_us >= WORTH_FILLING_US and ended_us - began.time_us > lost_us:
                until_us = ALWAYS_US if ended_us == span.ended_us else ended_us
                yield Piece(account.name, began.seq, span.last_seq, until_us, began.time_us, ended_us, 0)
                known_until_us = ended_us
        before = span.last_seq


def _separate(of_an_account: Iterator[Piece]) -> Iterator[Piece]:
    """Return the same pieces without overlapping numbers."""
    filling = [*of_an_account]
    for piece, after in zip_longest(filling, filling[1:]):
        yield piece if after is None else piece._replace(last_seq=min(piece.last_seq, after.first_seq - 1))


def _free(taken: Sequence[Piece]) -> Iterator[tuple[int, int, int]]:
    """Return the uncovered times: from, until, and the time after it that would become unknown."""
    from_us = -ALWAYS_US
    for piece in taken:
        yield from_us, piece.began_us, piece.lost_us
        from_us = max(from_us, piece.ended_us)
    yield from_us, ALWAYS_US, 0


def _has_snapshot(span: Known) -> bool:
    return span.snapshot_seq >= span.first_seq


def _find_snapshot(account: Account, span: Known, from_us: int) -> Snapshot:
    """Return the first snapshot of a span at or after this time, or the end of the span if there is none."""
    within = (snapshot for snapshot in account.snapshots if span.first_seq <= snapshot.seq <= span.last_seq)
    later = (snapshot for snapshot in within if snapshot.time_us >= from_us)
    return next(later, Snapshot(span.last_seq, span.ended_us))


def _number_parts(taken: Sequence[Piece]) -> Iterator[Piece]:
    part, before = 0, None
    for piece in taken:
        part += before is not None and before != piece.account
        yield piece._replace(part=part)
        before = piece.account
