"""Journals of several clusters that arrive in pieces: late, twice, in any order, some of them from before their cluster
had an id. A seed decides what arrives in which round."""

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from pyspark.sql import DataFrame, SparkSession

from kontroller.history.schemas import LINES
from tests.spark.clocks import drawn
from tests.spark.clocks.journals import Journal, lines
from tests.spark.clocks.oracle import Record
from tests.spark.folding import nights
from tests.spark.histories import random_cluster
from tests.spark.journal_scenes import controller, recorder

SEED: Final = 16
ROUNDS: Final = 3
_BAD_CLOCKS: Final = 4
_SHARED: Final = "/shared"

Folders = Mapping[str, Sequence[bytes]]


@dataclass(frozen=True, slots=True)
class Round:
    """The pieces that arrive together: the lines of journals, and the clusters about which they say something new."""

    folders: dict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    news: set[str] = field(default_factory=set)

    def lines(self, spark: SparkSession) -> DataFrame:
        rows = [
            (line.decode().rstrip("\n"), f"{journal}/segment.jsonl", journal, None)
            for journal, arrived in self.folders.items()
            for line in arrived
        ]
        return spark.createDataFrame(rows, LINES)


def rounds() -> list[Round]:
    """Return the rounds, which are the same each time. Each cluster arrives in some of them, and all has arrived with
    the last one."""
    rng, found = random.Random(SEED), [Round() for _ in range(ROUNDS)]
    for folders in (*_bad_clocks(), *_random(), *_make_competing()):
        for journal, written in folders.items():
            _cut_into_pieces(rng, found, journal, written)
    for folders_in_order in (*nights.draw_nights(), *nights.all_kinds(), *nights.doubtful()):
        for journal, pieces in folders_in_order.items():
            for one, piece in zip(found, pieces, strict=True):
                one.folders[journal] += piece
    for one, arrived in zip(found, _make_nameless(), strict=False):
        one.folders[_SHARED] += arrived
    _say_what_is_new(found)
    found[1].folders["/bad clock 0"].append(b"no record\n")
    found[1].news.add("bad clock 0")
    return found


def _say_what_is_new(found: Sequence[Round]) -> None:
    seen: set[tuple[str, bytes]] = set()
    for one in found:
        new = {(journal, line) for journal, arrived in one.folders.items() for line in arrived} - seen
        one.news.update(json.loads(line)["cluster_id"] or "" for _, line in new)
        seen |= new


def _cut_into_pieces(rng: random.Random, found: Sequence[Round], journal: str, written: Sequence[bytes]) -> None:
    cuts = sorted(rng.sample(range(1, len(written)), min(2, len(written) - 1)))
    pieces = [written[low:high] for low, high in zip([0, *cuts], [*cuts, len(written)], strict=True)]
    numbers = [rng.randrange(ROUNDS) for _ in pieces]
    if rng.random() < 0.5:
        numbers.sort()  # as they were written
    for piece, number in zip(pieces, numbers, strict=True):
        found[number].folders[journal] += piece
    again = rng.randrange(len(pieces))
    found[rng.randrange(numbers[again], ROUNDS)].folders[journal] += pieces[again]


def _bad_clocks() -> Iterator[Folders]:
    histories: list[list[Record]] = []

    @settings(
        max_examples=_BAD_CLOCKS, phases=[Phase.generate], deadline=None, suppress_health_check=[*HealthCheck],
        database=None,
    )  # fmt: skip
    @seed(SEED)
    @given(drawn.journals())
    def collect(records: list[Record]) -> None:
        histories.append(records)

    collect()
    for number, records in enumerate(histories):
        yield {f"/bad clock {number}": lines(records, f"bad clock {number}")}


def _random() -> Iterator[Folders]:
    """Yield journals with all kinds of records: configurations, brokers, reassignments, deletions, gaps."""
    yield {"/kept": random_cluster(SEED, cluster_id="kept", events=30).lines}
    yield {"/seen": random_cluster(SEED + 1, cluster_id="seen/%", events=15, is_recorded=True).lines}


def _make_competing() -> Iterator[Folders]:
    """Make epochs with several journals, and one epoch whose journal is in two folders."""
    own = controller("both").begin().alive(0.2).lose(0.4).lead(2, 0.6).alive(0.8)
    seen = recorder("both").begin().alive(0.3).snapshot().lead(-1, 0.5).alive(0.7)
    first, second = (controller("two", who=who).begin().alive(hours).lines for who, hours in ((1, 0.5), (2, 0.4)))
    half = len(first) // 2
    yield {"/both/controller": own.lines, "/both/recorder": seen.lines}
    yield {"/two/first": first[: half + 5], "/two/second": second, "/two/archive": first[half:]}


def _make_nameless() -> Iterator[list[bytes]]:
    """Make a journal whose cluster has no id yet. It gets one, and its owner becomes unknown when a second cluster
    writes to the journal."""
    records = Journal().begin().live(60).records
    half = len(records) // 2
    yield [line.replace(b'"cluster_id": ""', b'"cluster_id": null') for line in lines(records[:half], "")]
    yield lines(records[half:], "first")
    yield lines(Journal().begin().live(30).records, "second")
