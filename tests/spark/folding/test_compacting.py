"""Compacting a history: what is left says the same, and the history goes on as if nothing had been dropped."""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from kontroller.history.answers.all import answer_all
from kontroller.history.compacting.compact import Compacted
from kontroller.history.folding import fold
from kontroller.history.folding.choice import Choice, choose
from kontroller.history.folding.tables import RAW_EVENTS
from kontroller.history.generations.errors import ChangedMeanwhile
from kontroller.history.kept_history import KeptHistory
from kontroller.history.schemas import EVENTS, FINDINGS, KNOWN_SPANS, LINES, PROOFS, VIOLATIONS
from tests.spark.histories import RandomCluster, make_lines
from tests.spark.journal_scenes import controller, recorder

SNAPSHOTS = 18
DAY_US = 86_400_000_000

Journals = Mapping[str, Sequence[bytes]]
"""The lines of each journal, by its folder."""


def snapshots_of(seed: int, cluster_id: str, times: int = SNAPSHOTS, **how: bool) -> list[bytes]:
    """A random cluster that says its whole state very often."""
    cluster = RandomCluster(seed, cluster_id=cluster_id, **how)
    for _ in range(times):
        cluster.live(5)
    return cluster.lines


def spoil_checksums(written: Sequence[bytes]) -> list[bytes]:
    """Give each snapshot a checksum that is not its own."""
    return [
        json.dumps({**record, "checksum": record["checksum"] ^ 1}).encode() if "checksum" in record else line
        for line, record in ((line, json.loads(line)) for line in written)
    ]


def copy_part(written: Sequence[bytes]) -> list[bytes]:
    """A part that begins and ends in the middle of snapshots."""
    inside = [
        number for number, line in enumerate(written) if b'"snapshot": true' in line or b'"snapshot":true' in line
    ]
    return list(written[inside[len(inside) // 4] : inside[3 * len(inside) // 4]])


def take_in(kept: KeptHistory, journals: Journals) -> KeptHistory:
    rows = [
        (line.decode().rstrip("\n"), f"{journal}/segment.jsonl", journal, None)
        for journal, written in journals.items()
        for line in written
    ]
    kept.take_in_lines(kept.store.spark.createDataFrame(rows, LINES))
    kept.fold()
    return kept


Rows = dict[str, list[tuple[object, ...]]]


def all_that_is_said(kept: KeptHistory) -> Rows:
    """Return the rows of every layer and every answer, and the violations. Columns that name or count records are left
    out: entries of snapshots are dropped, and copies of parts repeat records."""
    answers = {table.name: rows.drop("records") for table, rows in answer_all(kept.layers()).items()}
    violations = {VIOLATIONS.name: kept.audit().drop("evidence")}
    return layers_of(kept) | _rows(answers | violations)


def layers_of(kept: KeptHistory) -> Rows:
    """Return the rows of every layer except the recorded events."""
    return _rows({table.name: rows for table, rows in kept.layers().items() if table != EVENTS})


def _rows(tables: Mapping[str, DataFrame]) -> Rows:
    return {name: sorted((tuple(row) for row in rows.collect()), key=repr) for name, rows in tables.items()}


JOURNALS: Journals = {
    "/whole": snapshots_of(1, "whole", SNAPSHOTS + 3, has_gaps=False),
    "/broken": snapshots_of(2, "broken"),
    "/seen": snapshots_of(3, "seen", is_recorded=True),
    "/wrong": spoil_checksums(snapshots_of(4, "wrong", has_gaps=False)),
    "/both/controller": controller("both").begin().alive(0.1).snapshot().lead(2, 0.2).snapshot().alive(0.3).lines,
    "/both/recorder": recorder("both").begin().snapshot().alive(0.2).snapshot().alive(0.4).lines,
}


LATER = snapshots_of(1, "whole", SNAPSHOTS + 8, has_gaps=False)[len(JOURNALS["/whole"]) :]
"""Records of the same day as the last ones of the whole journal, whose state has been known since before that day's
midnight."""
LAST_DAY = "2026-01-04"


@pytest.fixture(scope="module")
def plain(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> KeptHistory:
    return take_in(KeptHistory.open_history(spark, str(tmp_path_factory.mktemp("plain"))), JOURNALS)


@pytest.fixture(scope="module")
def said(plain: KeptHistory) -> Mapping[str, Any]:
    return all_that_is_said(plain)


@pytest.fixture(scope="module")
def compacted(plain: KeptHistory, tmp_path_factory: pytest.TempPathFactory) -> tuple[KeptHistory, Compacted]:
    kept = copy_of(plain, tmp_path_factory.mktemp("compacted"))
    return kept, kept.compact()


def copy_of(kept: KeptHistory, folder: Path) -> KeptHistory:
    return KeptHistory.open_history(kept.store.spark, str(shutil.copytree(kept.location, folder / "history")))


def entries_of(kept: KeptHistory, cluster: str) -> int:
    return kept.raw.read(RAW_EVENTS).where((f.col("cluster_id") == cluster) & f.col("snapshot")).count()


class TestEntriesOfSnapshots:
    """These tests run in order: each leaves the history for the next one."""

    def test_those_that_are_proven_go(self, plain: KeptHistory, compacted: tuple[KeptHistory, Compacted]) -> None:
        kept, gone = compacted
        before, after = plain.raw.read(RAW_EVENTS).count(), kept.raw.read(RAW_EVENTS).count()
        assert gone == Compacted(snapshots=gone.snapshots, entries=before - after, forgotten=0)
        assert gone.snapshots > SNAPSHOTS
        for cluster in ("whole", "broken", "seen"):
            assert entries_of(kept, cluster) < entries_of(plain, cluster)

    def test_one_of_each_day_stays_to_begin_with(self, compacted: tuple[KeptHistory, Compacted]) -> None:
        raw = compacted[0].raw.read(RAW_EVENTS).where("cluster_id = 'whole'")
        begun = raw.where("kind = 'snapshot_started'").groupBy(f.to_date("event_time"))
        assert {row[1] > 0 for row in begun.agg(f.count_if(f.expr("left_out is null"))).collect()} == {True}

    def test_those_that_are_not_proven_stay(self, plain: KeptHistory, compacted: tuple[KeptHistory, Compacted]) -> None:
        for cluster in ("wrong", "both"):
            assert entries_of(compacted[0], cluster) == entries_of(plain, cluster) > 0

    def test_what_is_left_says_the_same(
        self, said: Mapping[str, Any], compacted: tuple[KeptHistory, Compacted]
    ) -> None:
        assert said[VIOLATIONS.name]
        assert said.items() >= layers_of(compacted[0]).items()

    def test_a_journal_that_is_read_again_brings_none_back(self, compacted: tuple[KeptHistory, Compacted]) -> None:
        kept, _ = compacted
        before = kept.raw.read(RAW_EVENTS).count()
        assert take_in(kept, JOURNALS).raw.read(RAW_EVENTS).count() == before

    def test_nothing_is_left_to_go_then(self, compacted: tuple[KeptHistory, Compacted]) -> None:
        kept, _ = compacted
        before = kept.raw.at_present.parts
        assert kept.compact() == Compacted(snapshots=0, entries=0, forgotten=0)
        assert kept.raw.at_present.parts == before

    def test_what_is_left_goes_on_from_the_last_midnight(
        self,
        plain: KeptHistory,
        compacted: tuple[KeptHistory, Compacted],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        choices: list[Choice] = []

        def note_choice(*how: Any) -> Choice:
            choices.append(choose(*how))
            return choices[-1]

        monkeypatch.setattr(fold, "choose", note_choice)
        (tmp_path / "plain").mkdir()
        left = take_in(copy_of(compacted[0], tmp_path), {"/whole": LATER})
        assert choices[-1].days == {"whole": LAST_DAY}
        assert layers_of(left) == layers_of(take_in(copy_of(plain, tmp_path / "plain"), {"/whole": LATER}))

    def test_a_copy_of_parts_in_another_place_changes_nothing(
        self, said: Mapping[str, Any], compacted: tuple[KeptHistory, Compacted]
    ) -> None:
        copies = {f"{journal}/copy": copy_part(JOURNALS[journal]) for journal in ("/whole", "/seen")}
        assert all_that_is_said(take_in(compacted[0], copies)) == said


def drop_before(written: Iterable[bytes], first: tuple[int, int]) -> list[bytes]:
    found = ((line, json.loads(line)) for line in written)
    return [line for line, record in found if (record["controller_epoch"], record["seq"]) >= first]


def set_wrong_time(line: bytes) -> bytes:
    return json.dumps(json.loads(line) | {"event_time_us": 0}).encode()


class TestWhatIsOlder:
    """A day is kept. One of the last records was stamped in 1970, and another cluster's clock is a year ahead."""

    DAYS = 1

    @pytest.fixture(scope="class")
    def journals(self) -> Journals:
        whole = [*JOURNALS["/whole"]]
        last_alive = max(number for number, line in enumerate(whole) if b"snapshot" not in line)
        whole[last_alive] = set_wrong_time(whole[last_alive])
        whole[:40] = [line.replace(b'"cluster_id": "whole"', b'"cluster_id": null') for line in whole[:40]]
        ahead = [json.loads(line) for line in snapshots_of(7, "ahead")]
        later = [json.dumps(one | {"event_time_us": one["event_time_us"] + 365 * DAY_US}).encode() for one in ahead]
        short = controller("short").begin().alive(0.1).lines
        return {"/whole": whole, "/ahead": later, "/short": short}

    @pytest.fixture(scope="class")
    def kept(self, spark: SparkSession, journals: Journals, tmp_path_factory: pytest.TempPathFactory) -> KeptHistory:
        return take_in(KeptHistory.open_history(spark, str(tmp_path_factory.mktemp("old"))), journals)

    @pytest.fixture(scope="class")
    def gone(self, kept: KeptHistory) -> Compacted:
        return kept.compact(self.DAYS)

    def test_the_history_begins_at_the_last_snapshot_before(self, kept: KeptHistory, gone: Compacted) -> None:
        assert gone.forgotten > 0
        spans = kept.layers()[KNOWN_SPANS]
        kept_for = spans.groupBy("cluster_id").agg((f.max("ended") - f.min("began")).alias("known"))
        known = {row.cluster_id: row.known.total_seconds() / 86_400 for row in kept_for.collect()}
        assert known["whole"] >= self.DAYS
        assert known["ahead"] >= self.DAYS
        assert known["short"] > 0

    def test_it_says_what_it_would_say_had_nobody_written_before(
        self, spark: SparkSession, journals: Journals, kept: KeptHistory, gone: Compacted, tmp_path: Path
    ) -> None:
        assert gone
        raw = (
            kept.raw.read(RAW_EVENTS).groupBy("journal").agg(f.min(f.struct("controller_epoch", "seq")).alias("first"))
        )
        first = {row.journal: tuple(row.first) for row in raw.collect()}
        assert first["/whole"] > (1, 0) < first["/ahead"]
        assert first["/short"] == (1, 0)
        left = {journal: drop_before(written, first[journal]) for journal, written in journals.items()}
        anew = take_in(KeptHistory.open_history(spark, str(tmp_path)), left)
        assert layers_of(kept) == layers_of(anew)

    def test_a_stamp_of_long_ago_in_the_middle_of_today_is_today_s(self, kept: KeptHistory, gone: Compacted) -> None:
        assert gone
        assert kept.raw.read(RAW_EVENTS).where("cluster_id = 'whole' and year(event_time) = 1970").count() == 1
        found = kept.store.read(FINDINGS).where("cluster_id = 'whole'")
        assert found.where("problem = 'gap'").count() == 0
        assert kept.store.read(PROOFS).where("folded_checksum <> checksum").count() == 0


def test_a_compaction_is_refused_if_somebody_takes_in_records_that_it_has_not_judged(
    plain: KeptHistory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, fold_all = copy_of(plain, tmp_path), KeptHistory.fold

    def take_in_after_fold(kept: KeptHistory) -> None:
        fold_all(kept)
        kept.take_in_lines(make_lines(kept.store.spark, LATER))

    monkeypatch.setattr(KeptHistory, "fold", take_in_after_fold)
    before = kept.raw.read(RAW_EVENTS).count()
    with pytest.raises(ChangedMeanwhile, match="run this one again"):
        kept.compact()
    assert kept.raw.read(RAW_EVENTS).count() == before + len(LATER)
