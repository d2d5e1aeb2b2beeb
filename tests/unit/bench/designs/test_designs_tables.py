"""The tables of both designs side by side, and their copies in docs/performance.md."""

from pathlib import Path
from typing import Any

import pytest

from bench.designs.report.page import fill_document
from bench.designs.report.result import Result
from bench.designs.report.tables import TABLES
from bench.report.document import NOT_MEASURED

DOCS = Path(__file__).resolve().parents[4] / "docs"
V2: dict[str, Any] = {
    "design": "v2", "scenario": "death", "partitions": 300, "leaders": 100, "led_s": 2.0, "settled_s": 3.0, "known_s": 4.0,
    "processor_s": 5.0, "requests": 2_600, "znodes_read": 11_500, "notifications": 1_800, "watches": 4, "transactions": 500,
    "refused": 100, "znodes_written": 700, "messages": {"Fetch": 99},
    "written": {
        "create leader": 100, "delete leader": 100, "create request": 100, "delete request": 100, "set data ISR": 100,
    },
}  # fmt: skip
V3 = V2 | {
    "design": "v3", "led_s": 0.01, "requests": 26, "transactions": 2, "refused": 0, "znodes_written": 300,
    "messages": {"Fetch": 20, "LeaderAndIsr": 2, "UpdateMetadata": 2}, "written": {"set data state": 300},
}  # fmt: skip
ROUNDS = [
    {"broker": broker, "run": run, "records": 9, "written_per_s": rate, "read_per_s": rate, "awaited_per_s": rate}
    for broker, rates in (("stock", (80, 60, 90)), ("python", (40, 20, 60)))
    for run, rate in enumerate(rates)
]


def rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:1] == "|"][2:]


@pytest.fixture
def result() -> Result:
    larger = V2 | {"partitions": 900}
    return Result.model_validate({"settings": {"alone": True}, "scenarios": [V2, V3, larger], "throughput": ROUNDS})


def test_the_tables_of_the_document_are_those_of_its_result_file() -> None:
    document = (DOCS / "performance.md").read_text()
    assert document == fill_document(
        document, Result.model_validate_json((DOCS / "performance-designs.json").read_text())
    )


def test_counts_stand_beside_each_other_at_the_largest_size_of_both(result: Result) -> None:
    shown = {row[1]: row for row in rows(TABLES["counted"](result))}
    assert shown["requests to ZooKeeper"] == [
        "a broker's death, 300 partitions",
        "requests to ZooKeeper",
        "2,600",
        "26",
        "**100x**",
    ]
    assert shown["requests between servers, without Fetch"][2:] == ["0", "4", ""]
    assert shown["of these refused: another was faster"][2:] == ["100", "0", ""]


def test_times_are_shown_as_ratios_only_and_those_of_a_machine_that_others_used_not_at_all(result: Result) -> None:
    shown = {row[1]: row[2:] for row in rows(TABLES["counted"](result))}
    assert shown["until the last leader stands in ZooKeeper"] == ["", "", "**200x**"]
    disturbed = {row[1] for row in rows(TABLES["counted"](result.model_copy(update={"settings": {"alone": False}})))}
    assert shown.keys() - disturbed == {key for key in shown if key.startswith("until ")}


def test_what_a_new_leader_costs_stands_beside_what_the_seeds_say(result: Result) -> None:
    shown = {row[0]: row[2:] for row in rows(TABLES["seeds"](result))}
    assert shown["znodes of leader, epoch and ISR written for each"] == ["2.00", "3.00"]
    assert shown["transactions for each"] == ["5.00", "0.02"]
    assert shown["znodes written to tell a follower"] == ["2.00", "0"]


def test_growth_shows_what_was_measured_at_each_size(result: Result) -> None:
    shown = {(row[0], row[1]): row[2:] for row in rows(TABLES["growth"](result))}
    assert shown["a broker's death: requests to ZooKeeper", "v2"] == ["8.67", "2.89"]
    assert shown["a broker's death: requests to ZooKeeper", "v3"] == ["0.09", ""]


def test_the_stock_broker_stands_beside_the_python_one_round_by_round(result: Result) -> None:
    title = "written, many under way: 1 partition, 1 replica each"
    assert rows(TABLES["throughput"](result))[0] == [title, "2.0 3.0 1.5", "**2.0x**"]


def test_topics_of_several_partitions_stand_below_and_are_only_written() -> None:
    rates = {"stock": 900, "python": 300}
    measured = [
        {"broker": broker, "run": 1, "records": 9, "partitions": 6, "replicas": 2, "written_per_s": rate}
        for broker, rate in rates.items()
    ]
    result = Result.model_validate({"throughput": [*measured, *ROUNDS]})
    assert rows(TABLES["throughput"](result))[3:] == [
        ["written, many under way: 6 partitions, 2 replicas each", "3.0", "**3.0x**"]
    ]


def test_a_life_that_failed_is_reported() -> None:
    result = Result.model_validate({"failures": [{"design": "v2", "partitions": 10_000, "error": "no end"}]})
    assert rows(TABLES["failures"](result)) == [["v2", "10,000", "no end"]]


@pytest.mark.parametrize("name", sorted(TABLES.keys() - {"failures"}))
def test_a_table_without_rows_says_so(name: str) -> None:
    assert TABLES[name](Result()) == NOT_MEASURED
