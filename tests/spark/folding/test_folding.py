"""Each ingest folds again what is new, and nothing else. The result equals one fold of everything."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kontroller.history.folding import fold
from kontroller.history.folding.choice import Choice, choose
from kontroller.history.folding.tables import CHANGES, JOURNALS, RAW_EVENTS, TALLIES
from kontroller.history.generations.generation import Part, cluster_of, date_of, day_of
from kontroller.history.kept_history import KeptHistory
from kontroller.history.schemas import EVENTS, FINDINGS, LAYERS, PARTITION_INTERVALS
from kontroller.history.sources import text_logs
from kontroller.history.store import Store
from tests.spark.clocks.journals import Journal, lines
from tests.spark.folding import nights
from tests.spark.folding.arrivals import ROUNDS, Round, rounds
from tests.spark.folding.nights import quiet

LOGS = Path(__file__).parents[1] / "data" / "text_logs"
BROKERS = {0: 1, 2: 3}
"""The broker whose logs are ingested, by round."""
SAME_JOURNAL = {"", "first", "second"}
"""Clusters of one journal that has records without a cluster."""

OF_ALL = {JOURNALS.name, TALLIES.name}
"""Tables that are not divided."""
BY_DAY = {EVENTS.name, CHANGES.name}
Digests = Mapping[str, str]
"""The digest of each file of the layers, by its table, part and folder."""


@dataclass(frozen=True, slots=True)
class Folded:
    """The state of a history after a round."""

    kept: Digests
    parts: frozenset[tuple[str, Part]]
    choice: Choice

    def select(self, clusters: set[str]) -> set[tuple[str, Part]]:
        return {(table, part) for table, part in self.parts if table not in OF_ALL and cluster_of(part) in clusters}


def digests(store: Store) -> Digests:
    found = {}
    for table, part in store.at_present.all_parts():
        folder = Path(store.location, table, part)
        for path in folder.rglob("*.parquet"):
            name = f"{table} {day_of(part)} {path.parent.relative_to(folder)}"
            assert name not in found, "a folder has one file"
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def logs_in(kept: KeptHistory, broker: int) -> None:
    told = text_logs.lines(kept.store.spark, [str(LOGS / f"broker-{broker}")])
    kept.take_in(*text_logs.read(told, cluster_id="logs", time_zone="Europe/Berlin"))


@pytest.fixture(scope="module")
def arrived() -> list[Round]:
    return rounds()


@pytest.fixture(scope="module")
def kept(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> KeptHistory:
    return KeptHistory.open_history(spark, str(tmp_path_factory.mktemp("kept")))


@pytest.fixture(scope="module")
def choices() -> Iterator[list[Choice]]:
    """Note the parts that each fold decides to compute again."""
    made: list[Choice] = []

    def note_choice(*how: Any) -> Choice:
        made.append(choose(*how))
        return made[-1]

    with pytest.MonkeyPatch.context() as shipped:
        shipped.setattr(fold, "choose", note_choice)
        yield made


@pytest.fixture(scope="module")
def folded(spark: SparkSession, kept: KeptHistory, arrived: list[Round], choices: list[Choice]) -> list[Folded]:
    found = []
    for number, arrival in enumerate(arrived):
        kept.take_in_lines(arrival.lines(spark))
        if number in BROKERS:
            logs_in(kept, BROKERS[number])
            arrival.news.add("logs")
        kept.fold()
        found.append(Folded(digests(kept.store), kept.store.at_present.all_parts(), choices[-1]))
    return found


@pytest.mark.parametrize("number", range(1, ROUNDS))
def test_clusters_of_which_nothing_is_new_keep_their_folders(
    number: int, folded: list[Folded], arrived: list[Round]
) -> None:
    clusters = {cluster_of(part) for table, part in folded[number].parts if table not in OF_ALL}
    others = clusters - arrived[number].news - SAME_JOURNAL
    assert len(others) > 1
    assert folded[number].select(others) == folded[number - 1].select(others)
    again = folded[number].select(arrived[number].news) & folded[number - 1].select(arrived[number].news)
    assert all(_is_before(part, folded[number].choice.days) for _, part in again)
    assert {table for table, _ in again} == BY_DAY


@pytest.mark.parametrize("number", range(1, ROUNDS))
def test_of_journals_that_go_on_only_the_days_since_a_known_midnight_are_made_again(
    number: int, folded: list[Folded]
) -> None:
    days = folded[number].choice.days
    assert len([cluster for cluster in days if cluster.startswith("night")]) > 2
    earlier = {(table, part) for table, part in folded[number - 1].parts if table in BY_DAY and _is_before(part, days)}
    assert {cluster_of(part) for _, part in earlier} == days.keys()
    assert earlier <= folded[number].parts


def test_a_tail_that_says_something_of_what_was_before_is_not_folded_alone(folded: list[Folded]) -> None:
    whole = [cluster for one in folded[1:] for cluster in nights.DOUBTFUL if cluster in one.choice.whole]
    assert set(whole) == set(nights.DOUBTFUL)


def test_a_silence_is_proven_to_be_leaderless_by_a_record_that_comes_with_a_later_ingest(
    kept: KeptHistory, folded: list[Folded]
) -> None:
    assert "frozen" in folded[-1].choice.days
    rows = kept.store.read(PARTITION_INTERVALS).where("cluster_id = 'frozen' and not is_known")
    silent = rows.selectExpr("partition", "leader", "unix_seconds(ended) - unix_seconds(began) as seconds")
    assert sorted(silent.collect()) == [(0, -1, nights.HOUR_S), (1, None, nights.HOUR_S)]


def test_records_without_a_cluster_go_to_the_one_of_their_journal_and_back_when_that_names_two(
    folded: list[Folded],
) -> None:
    seen = [{cluster_of(part) for table, part in one.parts if table == "events"} & SAME_JOURNAL for one in folded]
    assert seen == [{""}, {"first"}, {"", "first", "second"}]


class TestAfterwards:
    """These tests run in order: each leaves the history whole."""

    @pytest.fixture(autouse=True)
    def _folded(self, folded: list[Folded]) -> None:
        assert folded

    def test_nothing_new_makes_no_generation(self, kept: KeptHistory, arrived: list[Round]) -> None:
        before = kept.store.at_present
        kept.take_in_lines(arrived[1].lines(kept.store.spark))
        kept.fold()
        assert kept.store.at_present == before

    def test_of_what_goes_on_no_records_are_read_of_the_days_before_the_last_snapshot(
        self, kept: KeptHistory, choices: list[Choice]
    ) -> None:
        journal = quiet()
        known = len(journal.records)
        later = lines(journal.live(3 * 3600).lead(1, 2).live(60).records[known:], "quiet")
        kept.take_in_lines(Round({"/quiet": later}).lines(kept.store.spark))
        before = kept.summary()
        with hide_parts(kept, _is_of_earlier_days):
            kept.fold()
        assert kept.summary() != before
        assert choices[-1].days == {"quiet": "2026-01-04"}

    def test_what_has_nothing_new_is_not_read(self, kept: KeptHistory) -> None:
        cluster = "bad clock 1"
        late = lines(Journal().begin().live(600).records, cluster)
        kept.take_in_lines(Round({"/late": late}).lines(kept.store.spark))
        before, old = kept.summary(), digests(kept.store)
        with hide_parts(kept, lambda _, part: cluster_of(part) != cluster):
            kept.fold()
            assert kept.summary() != before
        clusters = kept.store.read(EVENTS).groupBy("cluster_id").count().count()
        assert f"{kept.store.read(EVENTS).count()} records of {clusters} clusters" in kept.summary()
        assert kept.summary().endswith(f" {kept.store.read(FINDINGS).count()} findings.")
        new = digests(kept.store)
        changed = {name for name, digest in new.items() if old.get(name) != digest}
        assert {name.split()[0] for name in changed} >= {EVENTS.name, *OF_ALL}
        assert all(name.split()[0] in OF_ALL or f" of={cluster}" in name for name in changed)

    def test_other_definitions_make_all_of_it_anew_and_one_fold_of_all_comes_to_the_same_bytes(
        self, kept: KeptHistory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before, parts = digests(kept.store), kept.store.at_present.all_parts()
        monkeypatch.setattr(fold, "definitions", lambda: "others")
        kept.fold()
        assert {name.partition(" ")[0] for name in before} >= {table.name for table in LAYERS}
        assert digests(kept.store) == before
        assert not kept.store.at_present.all_parts() & parts


def _is_of_earlier_days(table: str, part: Part) -> bool:
    """Return True if no fold reads the part. For the last snapshot before midnight, a fold reads the day before,
    too."""
    return (table == RAW_EVENTS.name and _is_before(part, {"quiet": "2026-01-04"})) or (
        table == EVENTS.name and _is_before(part, {"quiet": "2026-01-03"})
    )


def _is_before(part: Part, days: Mapping[str, str]) -> bool:
    """Return True if the part is of one of these clusters, and of a day before the cluster's own."""
    day, of_cluster = date_of(part), days.get(cluster_of(part))
    return of_cluster is not None and day is not None and day < of_cluster


@contextmanager
def hide_parts(kept: KeptHistory, is_away: Callable[[str, Part], bool]) -> Iterator[None]:
    """Some parts of tables are away while the block runs."""
    places = [
        Path(store.location, table, part)
        for store in (kept.raw, kept.store)
        for table, part in store.at_present.all_parts()
        if table not in OF_ALL and is_away(table, part)
    ]
    for place in places:
        place.rename(f"{place}.away")
    try:
        yield
    finally:
        for place in places:
            Path(f"{place}.away").rename(place)
