"""The known times of a history, computed from the plain list of its records by the definitions of docs/pipeline.md.
Spark's results are compared with these."""

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any, Final, NamedTuple

Record = dict[str, Any]
Timeline = list[tuple[int, int, int | None]]
"""The states of a partition: from when, to when (microseconds), and its leader. -1 is none, None is unknown."""
SECOND: Final = 1_000_000
YEAR: Final = 366 * 86_400 * SECOND


class Told(NamedTuple):
    """A record of a partition's state: the number of its known piece, the version that it states, and the version that
    was there just before; None if nobody can say this."""

    piece: int
    partition: int
    version: int
    found: int | None
    has_time: bool


def timelines(records: Sequence[Record], *, silence_s: int, with_proofs: bool = False) -> dict[int, Timeline]:
    """Return the timeline of each partition, by the records of a cluster in their order.

    `with_proofs`: a partition has no leader, instead of an unknown state, if nothing can have been written."""
    known: list[tuple[int, int, dict[int, int], list[tuple[int, int, int]]]] = []
    leaders: dict[int, int] | None = None
    told: list[Told] = []
    latest = last_bound = is_known = 0
    for low, high, has_time, forgets, piece in pieces(records, silence_s):
        began = piece[0]
        changes: list[tuple[int, int, int]] = []
        snapshot: dict[int, int] | None = None
        entries: list[Told] = []
        leaders = None if forgets else leaders
        before = dict(leaders or {})
        for record in piece:
            moment = min(max(record["event_time_us"], low), high)
            if leaders is not None and not record.get("snapshot"):
                changes += [(moment, *said) for said in says(record)]
                leaders |= dict(says(record))
                told += tells(record, len(known), has_time=has_time)
            elif leaders is None:
                if record["kind"] == "snapshot_started":
                    snapshot, entries = {}, []
                if snapshot is not None:
                    snapshot |= dict(says(record))
                    entries += tells(record, len(known), has_time=has_time)
                    if record["kind"] == "snapshot_ended":
                        told += entries
                        leaders, before, began = snapshot, dict(snapshot), record
        last_bound, is_known = max(last_bound, high), leaders is not None
        if leaders is not None:
            start = max(min(max(began["event_time_us"], low), high), latest)
            since = piece[piece.index(began) :]
            latest = max(start, *(min(max(record["event_time_us"], low), high) for record in since))
            known.append((start, latest, before, changes))
    again = [start for start, *_ in known[1:]] + [latest if is_known else max(latest, last_bound)]
    partitions = sorted({partition for *_, before, _ in known for partition in before})
    told = told if with_proofs else []
    return {partition: tidy(states(partition, known, again, told)) for partition in partitions}


def states(
    partition: int, known: Any, again: Sequence[int], told: Sequence[Told]
) -> Iterator[tuple[int, int, int | None]]:
    for number, ((at, ended, before, changes), known_again) in enumerate(zip(known, again, strict=True)):
        leader = before[partition]
        for moment, _, new in (change for change in changes if change[1] == partition):
            until = min(max(at, moment), ended)
            yield at, until, leader
            at, leader = until, new
        yield at, ended, leader
        is_proven = leader == -1 and nothing_was_written(partition, number, told)
        yield ended, known_again, -1 if is_proven else None


def nothing_was_written(partition: int, piece: int, told: Sequence[Told]) -> bool:
    """Return True if the first record after this piece found the version that the last one in it states."""
    before = [one for one in told if one.partition == partition and one.piece <= piece]
    after = [one for one in told if one.partition == partition and one.piece > piece]
    return bool(before and after) and before[-1].has_time and after[0].found == before[-1].version


def tidy(timeline: Iterator[tuple[int, int, int | None]]) -> Timeline:
    """Drop stretches without length, and join neighbours that say the same."""
    lasting = (state for state in timeline if state[0] < state[1])
    same = (list(run) for _, run in groupby(lasting, key=lambda state: state[2]))
    return [(run[0][0], run[-1][1], run[0][2]) for run in same]


def says(record: Record) -> Iterator[tuple[int, int]]:
    if record["kind"] == "leadership" and "leader" in record["delta"]:
        yield record["partition"], record["delta"]["leader"]


def tells(record: Record, piece: int, *, has_time: bool) -> Iterator[Told]:
    for partition, _ in says(record):
        version = record["delta"]["partition_epoch"]
        is_late = record["cause"] == "unobserved" or record.get("inferred", False)
        found = version if record.get("snapshot") else None if is_late else version - 1
        yield Told(piece, partition, version, found, has_time)


def pieces(records: Sequence[Record], silence_s: int) -> Iterator[tuple[int, int, bool, bool, Sequence[Record]]]:
    """Return the records between two breaks: their bounds in time, True if their clock is believed, True if they forget
    the state before, and the records."""
    forgets, steps = [True], [True]
    for before, record in pairwise(records):
        passed = record["event_time_us"] - before["event_time_us"]
        follows = [record["controller_epoch"], record["seq"]] == [before["controller_epoch"], before["seq"] + 1]
        forgets.append(not follows or record["kind"] in ("gap", "recorder_started"))
        unobserved = record["cause"] == "unobserved" and passed > 0
        steps.append(passed < -60 * SECOND or passed > silence_s * SECOND or unobserved)
    begins = [place for place, is_step in enumerate(steps) if is_step]
    times = [record["event_time_us"] for record in records]
    runs = [(times[a], max(times[a], times[b - 1])) for a, b in pairwise([*begins, len(records)])]
    bounds = find_bounds(runs)
    cuts = [place for place in range(len(records)) if forgets[place] or steps[place]]
    for begin, end in pairwise([*cuts, len(records)]):
        yield *bounds[sum(steps[: begin + 1]) - 1], forgets[begin], records[begin:end]


def find_bounds(runs: Sequence[tuple[int, int]]) -> list[tuple[int, int, bool]]:
    """Return the bounds in time of each run, and True if its clock is believed.

    Runs that fit one after the other and cover most keep their times; the others have no length."""
    best: list[tuple[int, list[int]]] = []
    for number, (began, ended) in enumerate(runs):
        before = [
            # time in which two runs overlap counts once
            (covered - max(0, runs[other][1] - began), other)
            for other, (covered, _) in enumerate(best)
            if runs[other][0] < began or runs[other][1] <= began
        ]
        most, other = max(before, default=(0, -1))
        best.append((most + ended - began, [*(best[other][1] if other >= 0 else []), number]))
    row = max(best, key=lambda candidate: (candidate[0], candidate[1][-1]))[1]
    begins = [runs[number][0] for number in row]
    ends = [min([runs[number][1], *begins[place + 1 :]]) for place, number in enumerate(row)]
    kept = [(began, ended, number) for began, ended, number in zip(begins, ends, row, strict=True) if began <= ended]
    # A clock that jumps by more than a year is wrong on one side. The longer side is believed, of equal ones the later.
    far = [place for place, (a, b) in enumerate(pairwise(kept), start=1) if b[0] - a[1] > YEAR]
    sides = [kept[a:b] for a, b in pairwise([0, *far, len(kept)])]
    side = max(sides[::-1], key=lambda runs: sum(ended - began for began, ended, _ in runs))
    found: list[tuple[int, int, bool]] = []
    at = side[0][0]
    for number in range(len(runs)):
        believed = [(began, ended) for began, ended, owner in side if owner == number]
        # a run that is not believed has no length, and lies where the last believed one ended
        found.append((*believed[0], True) if believed else (at, at, False))
        at = found[-1][1]
    return found
