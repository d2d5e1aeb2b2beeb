"""The figures of docs/performance.md are those of its result file, and tables are made of any result."""

import json
import re
from pathlib import Path

import pytest

from bench.report.document import NOT_MEASURED, MissingTable
from bench.report.result import Result, Scenario
from bench.report.tables import TABLES, fill_document
from tests.unit.bench.rows import run

DOCS = Path(__file__).resolve().parents[3] / "docs"
MARKERS = "".join(f"<!-- begin: {name} -->\n<!-- end: {name} -->\n" for name in TABLES)


def rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:1] == "|"][2:]


def test_the_tables_of_the_document_are_those_of_its_result_file() -> None:
    document = (DOCS / "performance.md").read_text()
    assert document == fill_document(document, Result.load(DOCS / "performance.json"))


def test_the_document_shows_plots_that_are_there_in_both_formats() -> None:
    shown = re.findall(r"\(images/(performance-\w+)\.svg\)", (DOCS / "performance.md").read_text())
    assert shown
    for name in shown:
        assert (DOCS / "images" / f"{name}.svg").is_file()
        assert (DOCS / "images" / f"{name}.png").is_file()


def test_a_ratio_is_of_the_medians_at_the_largest_size_that_both_were_measured_with(result: Result) -> None:
    table = TABLES["ratios"](result)
    assert table.startswith("100,000 partitions.")
    assert rows(table) == [["a broker's death", "12.0 14.0 13.0", "1.00 1.50 1.30", "**10.0x**", "10x"]]


def test_kafkas_one_way_to_fail_over_stands_against_each_of_ours() -> None:
    result = Result.model_validate({
        "runs": [
            run("kafka", 10_000, 2.0, scenario="failover", variant="cold"),
            run("kontroller", 10_000, 0.2, scenario="failover", variant="cold"),
            run("kontroller", 10_000, 0.05, scenario="failover", variant="hot"),
        ]
    })  # fmt: skip
    found = [(row[0], row[3]) for row in rows(TABLES["ratios"](result))]
    assert found == [("failover, cold", "**10.0x**"), ("failover, hot standby", "**40.0x**")]


def test_kafkas_standby_stands_against_ours_where_it_was_measured() -> None:
    result = Result.model_validate({
        "runs": [
            run(controller, 10_000, seconds, scenario="failover", variant=variant)
            for controller, variant, seconds in (
                ("kafka", "cold", 2.0),
                ("kafka", "hot", 1.0),
                ("kontroller", "cold", 0.2),
                ("kontroller", "hot", 0.05),
            )
        ]
    })  # fmt: skip
    assert [row[3] for row in rows(TABLES["ratios"](result))] == ["**10.0x**", "**20.0x**"]


def test_scaling_shows_what_was_measured_at_several_sizes(result: Result) -> None:
    assert rows(TABLES["scaling"](result)) == [
        ["a broker's death", "Kontroller", "0.130", "1.30", ""],
        ["a broker's death", "Kafka", "1.30", "13.0", ""],
    ]


def test_of_several_runs_the_worst_waits_are_shown(result: Result) -> None:
    assert rows(TABLES["latencies"](result)) == [
        ["Kontroller", "a broker's death", "AlterPartition", "1.5", "50.0", "45.2", "2,000"]
    ]


def test_waits_are_shown_of_the_largest_size_that_both_were_measured_with(result: Result) -> None:
    (ours, *_) = result.latency
    rows_of = [
        ours,
        ours.model_copy(update={"partitions": ours.partitions * 3}),
        ours.model_copy(update={"controller": "kafka", "p50_ms": 70.0}),
    ]
    shown = rows(TABLES["latencies"](result.model_copy(update={"latency": tuple(rows_of)})))
    assert [(row[0], row[-1]) for row in shown] == [("Kafka", f"{ours.count:,}"), ("Kontroller", f"{ours.count:,}")]


def test_a_run_that_failed_is_reported() -> None:
    failure = {"controller": "kafka", "scenario": "create", "partitions": 10_000, "error": "no end in 120 s"}
    result = Result.model_validate({"failures": [failure]})
    assert rows(TABLES["failures"](result)) == [["Kafka", "creation", "10,000", "no end in 120 s"]]


def test_of_a_long_error_the_beginning_stands_in_the_table() -> None:
    failure = {
        "controller": "kafka",
        "scenario": "create",
        "partitions": 50,
        "error": "no end:\na | b" + " and c" * 100,
    }
    result = Result.model_validate({"failures": [failure]})
    text = TABLES["failures"](result).splitlines()[2]
    assert "no end: a \\| b and c" in text
    assert text.endswith(" ... |")


def test_what_kafka_did_not_finish_is_shown_without_a_ratio() -> None:
    runs = [run("kafka", 50, 2.0), run("kontroller", 50, 0.2), run("kontroller", 50, 0.5, scenario="create")]
    result = Result.model_validate({"runs": runs})
    assert rows(TABLES["ratios"](result))[1] == ["creation", "", "0.500", "", "5x"]


def test_processor_time_is_compared_too() -> None:
    runs = [run("kafka", 50, 2.0, cpu_s=3.0), run("kontroller", 50, 0.2, cpu_s=0.1, worst_stall_ms=80.4)]
    result = Result.model_validate({"runs": runs})
    assert rows(TABLES["processor"](result)) == [["a broker's death", "3.00", "0.100", "**30.0x**", "80"]]


def test_the_seeds_estimate_stands_above_the_measured_writes(result: Result) -> None:
    estimate, measured = rows(TABLES["writes"](result))
    assert estimate[3:] == ["*40.0*", "*4.00*"]
    assert measured == ["awaited", "1", "1", "20.0 (20.0)", "2.00 (2.00)"]


def test_writes_that_wait_for_the_disk_stand_beside_those_that_do_not(result: Result) -> None:
    assert rows(TABLES["costs"](result)) == [["awaited", "1", "1", "20.0 (20.0)", "4.00 (4.00)", "9.50", ""]]


def test_facts_of_the_machine_are_shown_with_their_units(result: Result) -> None:
    shown = rows(TABLES["machine"](result))
    assert shown[:3] == [["cpus", "2"], ["memory (MB)", "24,000"], ["kernel", "6.1"]]
    assert shown[3:] == [["java: heap (MB)", "1,024"], ["kinds", "a, b"]]


@pytest.mark.parametrize("name", sorted(TABLES.keys() - {"failures"}))
def test_a_table_without_rows_says_so(name: str) -> None:
    assert NOT_MEASURED in TABLES[name](Result())


def test_filling_replaces_tables_and_leaves_the_prose_alone(result: Result) -> None:
    document = f"# By hand\n\n{MARKERS}\nThe end.\n"
    once = fill_document(document, result)
    assert once.startswith("# By hand\n\n<!-- begin: machine -->\n\n|")
    assert once.endswith("\nThe end.\n")
    assert fill_document(once, Result()) == fill_document(document, Result())


@pytest.mark.parametrize(
    "document",
    ["", MARKERS * 2, MARKERS + "<!-- begin: other -->\n", MARKERS.replace("<!-- end: reads -->\n", "")],
    ids=["none", "twice", "unknown", "without an end"],
)
def test_a_document_with_wrong_markers_is_refused(document: str) -> None:
    with pytest.raises(MissingTable):
        fill_document(document, Result())


def test_a_result_that_lacks_a_field_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text(json.dumps({"runs": [{"controller": "kafka", "scenario": "create", "partitions": 10}]}))
    with pytest.raises(ValueError, match="seconds"):
        Result.load(file)


def test_the_goal_of_a_scenario_is_said_in_its_terms() -> None:
    assert Scenario(name="a", title="a", ratio=10, seconds=0.5).goal == "10x, ≤ 0.5 s"
    assert Scenario(name="a", title="a").goal == ""
