"""Journals that go on over midnight and arrive in order, so that only their tails are folded; and journals whose tail
says something about the time before."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.spark.clocks import drawn
from tests.spark.clocks.journals import START_S, Journal, lines
from tests.spark.clocks.oracle import SECOND, Record
from tests.spark.histories import random_cluster

DAY_S: Final = 86_400
HOUR_S: Final = 3600
MIDNIGHT_US: Final = (START_S + DAY_S) * SECOND
_DRAWN: Final = 10
_BEFORE_S: Final = 120
"""The seconds before midnight in which something is recorded."""

DOUBTFUL: Final = (
    "a number of the evening again", "another alive interval", "resigned at midnight", "ahead before midnight",
    "an onlooker after all", "ahead for long", "a later term of the year before", "two writers",
    "clock set before midnight", "clock set after midnight",
)  # fmt: skip

Pieces = Sequence[Sequence[bytes]]
Arriving = Mapping[str, Pieces]
"""The pieces that arrive one after the other, by journal."""


def evening(*, is_recorded: bool = False, boot: str = "") -> Journal:
    """A journal shortly before midnight, whose state is known."""
    journal = Journal(is_recorded=is_recorded, boot=boot)
    journal.now_s = DAY_S - _BEFORE_S
    return journal.begin().live(_BEFORE_S - 15)


def quiet() -> Journal:
    """Return several nights through which the state stays known."""
    journal = Journal(alive_s=3600).begin()
    for leader in (2, 1, -1):
        journal.live(DAY_S - 7200).snapshot().live(7200 + 60).lead(0, leader)
    return journal.live(60)


def frozen() -> Iterator[Sequence[Record]]:
    """Yield a night in pieces: partition 0 loses its leader, and its controller is frozen for an hour and elects one
    later."""
    journal = evening().live(40).lead(0, -1).live(20)
    begun = len(journal.records)
    woken = len(journal.wait(HOUR_S).alive().live(20).records)
    records = journal.lead(0, 2).live(20).records
    yield from (records[:begun], records[begun:woken], records[woken:])


def draw_nights() -> Iterator[Arriving]:
    """Draw nights with clock errors, silences, losses and changes of terms after midnight, in three pieces."""
    found: list[tuple[list[Record], list[int]]] = []
    numbers = st.integers(0, 99)
    steps_of = st.lists(drawn.STEPS, min_size=2, max_size=9)
    strategy = st.tuples(st.booleans(), st.sampled_from((0, 3, -50)), steps_of, st.tuples(numbers, numbers))

    @settings(
        max_examples=_DRAWN, phases=[Phase.generate], deadline=None, suppress_health_check=[*HealthCheck], database=None
    )
    @seed(DAY_S)
    @given(strategy)
    def collect(one: tuple[bool, float, list[drawn.Step], tuple[int, int]]) -> None:
        is_recorded, ahead_s, steps, cuts = one
        journal = evening(is_recorded=is_recorded).set_clock(ahead_s).live(40)
        known = len(journal.records)
        for step in steps:
            step(journal)
        of = max(len(journal.records) - known, 1)
        found.append((journal.records, sorted(known - 1 + cut % of for cut in cuts)))

    collect()
    for number, (records, (first, second)) in enumerate(found):
        name = f"night {number}"
        written = lines(records, name)
        yield {f"/{name}": [written[:first], written[first:second], written[second:]]}


def all_kinds() -> Iterator[Arriving]:
    """Yield every kind of record, for some days; a quiet cluster, which then goes on; and a frozen one."""
    yield {"/quiet": [lines(quiet().records, "quiet"), [], []]}
    yield {"/frozen": [lines(piece, "frozen") for piece in frozen()]}
    written = random_cluster(DAY_S, cluster_id="grown", events=60).lines
    first, second = len(written) // 2, 3 * len(written) // 4
    yield {"/grown": [written[:first], written[first:second], written[second:]]}


def doubtful() -> Iterator[Arriving]:
    """Return tails that say something about the time before midnight. Folded alone, each of them would give another
    result."""
    for name, journal in _doubtful():
        yield {f"/{name}": _cut_at_midnight(lines(journal.records, name), journal)}
    rival = evening().live(30)
    name = "two writers"
    other = lines(evening().live(60).records, name)
    yield {
        f"/{name}": _cut_at_midnight(lines(rival.live(20).records, name), rival),
        f"/{name} too": [[], [], other[5:]],
    }


def _doubtful() -> Iterator[tuple[str, Journal]]:
    journal = evening()
    number = len(journal.records) - 1
    again = {**journal.records[number], "event_time_us": MIDNIGHT_US + SECOND}
    journal.live(40)
    journal.records.append(again)
    yield "a number of the evening again", journal
    yield "another alive interval", evening().live(40).alive(alive_interval_ms=1000).wait(30).alive()
    yield "resigned at midnight", evening().wait(20).resign().wait(5).begin().live(30)
    yield "ahead before midnight", evening().set_clock(40).live(5).set_clock(0).wait(4).alive().live(60)
    journal = evening().live(40)
    journal.records[-1]["inferred"] = True
    yield "an onlooker after all", journal
    yield "ahead for long", evening().set_clock(7200).live(5).set_clock(0).live(60)
    yield "a later term of the year before", evening().live(40).begin(ahead_s=-2e9).live(30)
    yield "clock set before midnight", evening(boot="set").set_clock(-3).live(5).set_clock(0).live(60)
    yield "clock set after midnight", evening(boot="set").live(40).set_clock(-3).lead(0, -1).live(60)


def _cut_at_midnight(written: Sequence[bytes], journal: Journal) -> Pieces:
    """Cut after the first record of the new day, and before the last one of all."""
    first = next(number for number, record in enumerate(journal.records) if record["event_time_us"] >= MIDNIGHT_US) + 1
    return [written[:first], written[first:-1], written[-1:]]
