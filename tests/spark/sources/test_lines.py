"""Every possible fault of a line is found and named correctly among good lines."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from controller_core.journal.records import FIELDS, IN_DELTAS, NEEDED
from kontroller.history.folding.tables import RAW_EVENTS, RAW_FINDINGS
from kontroller.history.kept_history import KeptHistory
from kontroller.history.sources import journal_files

Line = dict[str, Any]
ENVELOPE: Line = {
    "v": 1, "cluster_id": "c", "controller_id": 1, "controller_epoch": 5, "event_time_us": 1_790_000_000_000_000,
    "cause": "broker_failed", "correlation_id": "5-1",
}  # fmt: skip
OF_A_KIND: Line = {"topic": "t", "partition": 0, "broker": 1, "entries": 3, "checksum": 7, "dropped": 2}
LISTS = ("isr", "replicas", "adding", "removing", "origin_order", "endpoints")
MAPS = ("supported_features", "finalized_features", "config", "partitions")
NUMBERS = (
    "controller_id", "controller_epoch", "seq", "event_time_us", "took_us", "partition", "broker", "entries", "checksum",
    "alive_interval_ms",
)  # fmt: skip
KINDS = sorted({*map(str, NEEDED), "controller_alive", "of_a_later_version"})


def list_needed(kind: str, *, in_snapshot: bool) -> list[str]:
    """The names of the fields that a record must have besides the envelope, those of its delta with a prefix."""
    in_delta = FIELDS.get(kind, ()) if in_snapshot or kind not in IN_DELTAS else ()
    return [*NEEDED.get(kind, ()), *(f"delta.{name}" for name in in_delta)]


def good(kind: str, *, in_snapshot: bool = False) -> Line:
    """Return a record that has the required fields and no others."""
    line = ENVELOPE | {"kind": kind} | ({"snapshot": True} if in_snapshot else {})
    for name in list_needed(kind, in_snapshot=in_snapshot):
        place, _, field = name.rpartition(".")
        if place:
            line["delta"][field] = [] if field in LISTS else {} if field in MAPS else 0
        else:
            line[name] = {} if name == "delta" else OF_A_KIND[name]
    return line


def drop_field(line: Line, name: str) -> Line:
    if name.startswith("delta."):
        return line | {"delta": drop_field(line["delta"], name.removeprefix("delta."))}
    return {field: value for field, value in line.items() if field != name}


def bad() -> Iterator[tuple[Line | str, str, str]]:
    """Return lines, the fault of each, and the text of its finding."""
    for kind in KINDS:
        for name in (*ENVELOPE, "kind"):
            if name != "cluster_id":
                yield drop_field(good(kind), name), "incomplete", name
        for in_snapshot in (False, True):
            for name in list_needed(kind, in_snapshot=in_snapshot):
                yield drop_field(good(kind, in_snapshot=in_snapshot), name), "incomplete", f"{kind} record lacks {name}"
    for name in NUMBERS:
        yield good("controller_alive") | {name: -1}, "impossible", f": {name} is out of range"
        yield good("controller_alive") | {name: "1"}, "unreadable", "not a record"
        yield good("controller_alive") | {name: 2**63}, "unreadable", "not a record"
    yield good("gap") | {"dropped": 0}, "impossible", ": dropped is out of range"
    for long_id in ("x" * 201, "/" * 67, "é" * 101):
        yield good("controller_alive") | {"cluster_id": long_id}, "impossible", ": cluster_id is out of range"
    yield good("controller_alive") | {"v": 2}, "newer_schema", "a newer Kontroller"
    yield good("controller_alive") | {"v": 2, "seq": -1, "partition": -1}, "newer_schema", "a newer Kontroller"
    yield json.dumps(good("controller_alive")), "incomplete", "record lacks seq"
    yield good("leadership") | {"delta": {"isr": {"1": 2}}}, "unreadable", "not a record"
    yield json.dumps(good("controller_alive"))[:60], "torn", "the writer was stopped"
    yield "", "unreadable", "not a record"
    yield "  ", "unreadable", "not a record"
    yield "null", "unreadable", "not a record"
    yield "what?", "unreadable", "what?"


def number_lines(lines: list[Line | str]) -> list[str]:
    """Give each line a number of its own, unless the number is its fault."""
    return [
        line if isinstance(line, str) else json.dumps({"seq": number} | line)
        for number, line in enumerate(lines, start=1)
    ]


GOOD = [good(kind, in_snapshot=in_snapshot) for kind in KINDS for in_snapshot in (False, True)]
GOOD += [good("controller_alive") | {"cluster_id": longest} for longest in ("x" * 200, "/" * 50, "😀" * 50)]
BAD = list(bad())


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> KeptHistory:
    journal = tmp_path_factory.mktemp("journal")
    lines = number_lines([*GOOD, *(line for line, _, _ in BAD)])
    (journal / "segment.jsonl").write_text("\n".join(lines) + "\n")
    kept = KeptHistory.open_history(spark, str(tmp_path_factory.mktemp("history")))
    kept.take_in_lines(journal_files.lines(spark, [str(journal)]))
    return kept


def test_good_lines_are_events_and_no_others(history: KeptHistory) -> None:
    events = history.raw.read(RAW_EVENTS).collect()
    assert sorted(row.seq for row in events) == list(range(1, len(GOOD) + 1))


def test_a_finding_has_the_beginning_of_an_id_that_is_too_long(history: KeptHistory) -> None:
    findings = history.raw.read(RAW_FINDINGS)
    named = {row.cluster_id for row in findings.where(findings.detail.contains("cluster_id is out")).collect()}
    assert named == {f"{letter * 30}..." for letter in "x/é"}


def test_every_other_line_has_its_finding(history: KeptHistory) -> None:
    found: list[Row] = history.raw.read(RAW_FINDINGS).collect()
    left = [(row.problem, row.detail) for row in found]
    for line, problem, said in BAD:
        told = next((one for one in left if one[0] == problem and said in one[1]), None)
        assert told is not None, (line, problem, said)
