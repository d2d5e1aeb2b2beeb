"""Any fault of the input has its finding, ends no job, and leaves the rest of the history as it was."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from controller_core.journal.records import FIELDS
from kontroller.history.schemas import FINDINGS, PARTITION_INTERVALS
from kontroller.history.sources import journal_files
from tests.spark.histories import keep_lines, random_cluster, rows

Journals = dict[str, bytes]
"""The lines by folder, below that of the cluster."""
DAY_US = 86_400_000_000
UPTIME = ("boot", "boot_us")
HISTORY = [json.loads(line) for line in random_cluster(1, cluster_id="c", events=40, has_gaps=False).lines]


def journal(*records: dict[str, Any] | bytes) -> Journals:
    lines = [record if isinstance(record, bytes) else json.dumps(record).encode() + b"\n" for record in records]
    return {"controller": b"".join(lines)}


def alter(**fields: object) -> dict[str, Any]:
    """The last change of a leadership with other fields; without those that are None."""
    last = next(n for n in reversed(range(len(HISTORY))) if CHANGED[n])
    changed = HISTORY[last] | {"controller_epoch": HISTORY[-1]["controller_epoch"]} | fields
    return {name: value for name, value in changed.items() if value is not None}


def shift_times(moved: Callable[[int], int], *, has_uptime: bool = False) -> Journals:
    """The clock is off by so many microseconds at each record. `has_uptime`: the records have the machine's uptime."""
    shifted = [record | {"event_time_us": record["event_time_us"] + moved(n)} for n, record in enumerate(HISTORY)]
    if not has_uptime:
        shifted = [{name: record[name] for name in record if name not in UPTIME} for record in shifted]
    return journal(*shifted)


def add_recorder(count: int) -> Journals:
    """Return the beginning of an epoch as a recorder saw it."""
    epoch = HISTORY[-1]["controller_epoch"]
    seen = [
        record | {"inferred": True, "cause": "guessed"} for record in HISTORY if record["controller_epoch"] == epoch
    ]
    return journal(*HISTORY) | {"recorder": b"".join(json.dumps(record).encode() + b"\n" for record in seen[:count])}


LAST = HISTORY[-1]
NEXT = LAST["seq"] + 1
CHANGED = [record["kind"] == "leadership" and "snapshot" not in record for record in HISTORY]
MIDDLE = next(n for n in range(len(HISTORY) // 2, len(HISTORY)) if CHANGED[n] and CHANGED[n + 1])
SUCCESSOR = next(n for n, record in enumerate(HISTORY) if record["controller_epoch"] == LAST["controller_epoch"])
DEPOSED = HISTORY[SUCCESSOR - 1] | {
    "kind": "controller_resigned",
    "seq": HISTORY[SUCCESSOR - 1]["seq"] + 1,
    "event_time_us": HISTORY[SUCCESSOR]["event_time_us"] + 9_000_000,
}
CASES: dict[str, tuple[Journals, dict[str, int], bool | None]] = {
    "clean": (journal(*HISTORY), {}, True),
    "torn": (journal(*HISTORY, json.dumps(LAST).encode()[:70]), {"torn": 1}, True),
    "no json": (journal(b"\xff\xfe what?\n", *HISTORY, b"\n"), {"unreadable": 2}, True),
    "wrong types": (journal(*HISTORY, alter(seq="x"), alter(delta={"isr": "1,2"})), {"unreadable": 2}, True),
    "newer": (journal(*HISTORY, alter(v=2, seq=NEXT)), {"newer_schema": 1}, True),
    "incomplete": (
        journal(*HISTORY, alter(topic=None), alter(seq=None), alter(kind="broker", broker=1), alter(kind="gap")),
        {"incomplete": 4},
        True,
    ),
    "impossible": (journal(*HISTORY, alter(partition=-1), alter(kind="gap", dropped=0)), {"impossible": 2}, True),
    "unknown kind": (journal(*HISTORY, LAST | {"kind": "brand_new", "seq": NEXT, "more": [1]}), {}, True),
    "twice": (journal(*HISTORY, *HISTORY), {}, True),
    "two records": (journal(*HISTORY, HISTORY[MIDDLE] | {"cause": "zzz"}), {"two_records": 1}, None),
    "hole": (journal(*HISTORY[:MIDDLE], *HISTORY[MIDDLE + 1 :]), {"gap": 1}, None),
    "declared gap": (journal(*HISTORY, LAST | {"kind": "gap", "seq": NEXT, "dropped": 7}), {"gap": 7}, False),
    "clock back": (shift_times(lambda n: -3 * DAY_US if n == MIDDLE else 0), {"clock_not_believed": 1}, False),
    "clock back for a moment of the machine's uptime": (
        shift_times(lambda n: -3 * DAY_US if n == MIDDLE else 0, has_uptime=True),
        {},
        True,
    ),
    "resigned long after": (journal(*HISTORY[:SUCCESSOR], DEPOSED, *HISTORY[SUCCESSOR:]), {}, None),
    "clock of the next one behind": (
        shift_times(lambda n: -DAY_US // 2 if n >= SUCCESSOR else 0),
        {"clock_not_believed": 23},
        False,
    ),
    "clock ahead": (
        shift_times(lambda n: 30 * DAY_US if n > MIDDLE else 0),
        {"silence": 1},
        False,
    ),
    "clock far ahead": (
        shift_times(lambda n: 2_000_000 * DAY_US if n > MIDDLE else 0),
        {"clock_not_believed": 48},
        False,
    ),
    "clock far ahead, until the next one by its uptime": (
        shift_times(lambda n: 2_000_000 * DAY_US if n > MIDDLE else 0, has_uptime=True),
        {"clock_not_believed": 23},
        False,
    ),
    "nobody wrote": (
        shift_times(lambda n: 4 * DAY_US if HISTORY[n]["controller_epoch"] == LAST["controller_epoch"] else 0),
        {"silence": 1},
        False,
    ),
    "recorder too": (add_recorder(5), {"two_journals": 5}, True),
    "no such topic": (
        journal(
            *HISTORY, alter(topic="nowhere", seq=NEXT, **{name: LAST[name] for name in ("event_time_us", *UPTIME)})
        ),
        {"unknown_topic": 1},
        False,
    ),
}


@pytest.fixture(scope="module")
def outcome(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Counter[str]], dict[str, object]]:
    """Return the findings of each case, which is a cluster of its name, and the intervals of its partitions."""
    root = tmp_path_factory.mktemp("journals")
    for name, (journals, _, _) in CASES.items():
        for folder, data in journals.items():
            (root / name / folder).mkdir(parents=True)
            text = data.replace(b'"cluster_id": "c"', f'"cluster_id": "{name}"'.encode())
            (root / name / folder / "segment.jsonl").write_bytes(text)
    store = keep_lines(spark, journal_files.lines(spark, [str(root)]), tmp_path_factory.mktemp("tables"))
    findings: dict[str, Counter[str]] = {name: Counter() for name in CASES}
    for finding in rows(store, FINDINGS).collect():
        findings[finding.cluster_id][finding.problem] += finding["count"]
    intervals: dict[str, list[object]] = {name: [] for name in CASES}
    for row in rows(store, PARTITION_INTERVALS).orderBy(*PARTITION_INTERVALS.order).collect():
        intervals[row.cluster_id].append(row[1:])
    return findings, dict(intervals)


@pytest.mark.parametrize("case", CASES)
def test_bad_input_has_exactly_its_finding(
    case: str, outcome: tuple[dict[str, Counter[str]], dict[str, object]]
) -> None:
    _, expected, leaves_the_rest = CASES[case]
    findings, intervals = outcome
    assert dict(findings[case]) == expected
    assert intervals["clean"]
    assert leaves_the_rest in (None, intervals[case] == intervals["clean"])


def test_what_must_be_recorded_in_full_is_what_the_controller_records() -> None:
    told: dict[str, set[str]] = {}
    for record in HISTORY:
        if record.get("snapshot"):
            told.setdefault(record["kind"], set()).update(record["delta"])
    demanded = {str(kind): set(names) for kind, names in FIELDS.items()}
    assert {kind: names - {"rack"} for kind, names in told.items()}.items() <= demanded.items()
