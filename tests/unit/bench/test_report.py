"""The figures of docs/performance.md are those of its result file, and tables and plots are made of any result."""

import json
import re
from pathlib import Path

import pytest

from bench.plots import PLOTS, draw
from bench.report import DOCUMENT, IMAGES, KEPT_RESULT, write_report
from bench.result import Result, Scenario
from bench.tables import CAPTIONS, NOT_MEASURED, TABLES, MissingTable, filled

SECONDS = {"kafka": (12.0, 14.0, 13.0), "kontroller": (1.0, 1.5, 1.3)}
MARKERS = "".join(f"<!-- begin: {name} -->\n<!-- end: {name} -->\n" for name in TABLES)


def run(controller: str, partitions: int, seconds: float, **more: object) -> dict[str, object]:
    return {
        "controller": controller, "scenario": "broker_death", "variant": "", "partitions": partitions,
        "seconds": seconds, "cpu_s": seconds, "rss_mb": None, **more,
    }  # fmt: skip


def transfer(way: str, sessions: int, seconds: float, **more: object) -> dict[str, object]:
    return {"way": way, "batch": 1, "window": 1, "sessions": sessions, "partitions": 10_000, "seconds": seconds, **more}


@pytest.fixture
def result() -> Result:
    runs = [
        run(name, size, seconds * size / 100_000, rss_mb=200.0)
        for name, all_seconds in SECONDS.items()
        for size in (10_000, 100_000)
        for seconds in all_seconds
    ]
    alone = run("kontroller", 1_000_000, 20.0, scenario="failover", variant="hot")
    latency = {
        "controller": "kontroller", "scenario": "broker_death", "request": "AlterPartition",
        "p50_ms": 2.0, "p99_ms": 30.0, "max_ms": 45.25, "count": 1200,
    }  # fmt: skip
    writes = [transfer("awaited", sessions, 20 / sessions) for sessions in (1, 1, 1, 10)]
    writes += [transfer("multi-read", 1, 0.02, op="read", window=None), transfer("awaited", 1, 4.0, syncs=False)]
    machine = {"cpus": 2, "memory_mb": 24_000, "kernel": "6.1", "java": {"heap_mb": 1024}}
    return Result.model_validate({
        "machine": machine, "runs": [*runs, alone], "latency": [latency], "writes": writes, "of_no_concern": 1,
    })  # fmt: skip


def rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:1] == "|"][2:]


def test_the_tables_of_the_document_are_those_of_its_result_file() -> None:
    document = DOCUMENT.read_text()
    assert document == filled(document, Result.load(KEPT_RESULT))


def test_the_document_shows_plots_that_are_there_in_both_formats() -> None:
    shown = re.findall(r"\(images/(performance-\w+)\.svg\)", DOCUMENT.read_text())
    assert shown
    for name in shown:
        assert (IMAGES / f"{name}.svg").is_file()
        assert (IMAGES / f"{name}.png").is_file()


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


def test_scaling_leaves_out_what_was_not_measured(result: Result) -> None:
    assert rows(TABLES["scaling"](result)) == [
        ["failover, hot standby", "Kontroller", "", "", "20.0"],
        ["a broker's death", "Kontroller", "0.130", "1.30", ""],
        ["a broker's death", "Kafka", "1.30", "13.0", ""],
    ]


def test_the_seeds_estimate_stands_above_the_measured_writes(result: Result) -> None:
    estimate, measured = rows(TABLES["writes"](result))
    assert estimate[3:] == ["*40.0*", "*4.00*"]
    assert measured == ["awaited", "1", "1", "20.0 (20.0)", "2.00 (2.00)"]


def test_writes_that_wait_for_the_disk_stand_beside_those_that_do_not(result: Result) -> None:
    assert rows(TABLES["unsynced"](result)) == [["awaited", "1", "1", "20.0 (20.0)", "4.00 (4.00)"]]


def test_facts_of_the_machine_are_shown_with_their_units(result: Result) -> None:
    shown = rows(TABLES["machine"](result))
    assert shown == [["cpus", "2"], ["memory (MB)", "24,000"], ["kernel", "6.1"], ["java: heap (MB)", "1,024"]]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_without_rows_says_so(name: str) -> None:
    assert NOT_MEASURED in TABLES[name](Result())


def test_filling_replaces_tables_and_leaves_the_prose_alone(result: Result) -> None:
    document = f"# By hand\n\n{MARKERS}\nThe end.\n"
    once = filled(document, result)
    assert once.startswith("# By hand\n\n<!-- begin: machine -->\n\n|")
    assert once.endswith("\nThe end.\n")
    assert filled(once, Result()) == filled(document, Result())


@pytest.mark.parametrize(
    "document",
    ["", MARKERS * 2, MARKERS + "<!-- begin: other -->\n", MARKERS.replace("<!-- end: reads -->\n", "")],
    ids=["none", "twice", "unknown", "without an end"],
)
def test_a_document_with_wrong_markers_is_refused(document: str) -> None:
    with pytest.raises(MissingTable):
        filled(document, Result())


def test_a_result_that_lacks_a_field_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text(json.dumps({"runs": [{"controller": "kafka", "scenario": "create", "partitions": 10}]}))
    with pytest.raises(ValueError, match="seconds"):
        Result.load(file)


def test_the_goal_of_a_scenario_is_said_in_its_terms() -> None:
    assert Scenario(name="a", title="a", ratio=10, seconds=0.5).goal == "10x, ≤ 0.5 s"
    assert Scenario(name="a", title="a").goal == ""


def test_the_same_result_makes_the_same_plots(result: Result, tmp_path: Path) -> None:
    first, second = draw(result, tmp_path / "first"), draw(result, tmp_path / "second")
    assert [path.name for path in first] == [f"performance-{name}.{kind}" for name in PLOTS for kind in ("png", "svg")]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_a_report_has_every_table_and_plot(result: Result, tmp_path: Path) -> None:
    source = tmp_path / "result.json"
    source.write_text(result.model_dump_json())
    page, *plots = write_report(source, tmp_path / "report")
    text = page.read_text()
    assert all(table(result) in text for table in TABLES.values())
    assert set(re.findall(r"\((performance-\w+\.svg)\)", text)) == {
        path.name for path in plots if path.suffix == ".svg"
    }
    assert list(PLOTS) == list(CAPTIONS)


@pytest.mark.parametrize(
    "measured",
    [{}, {"runs": [run("kontroller", 10_000, 2.0)]}, {"writes": [transfer("awaited", 1, 4.0, syncs=False)]}],
    ids=["nothing", "us alone", "writes that do not wait for the disk"],
)
def test_there_are_plots_of_what_is_in_the_tables(measured: dict[str, object], tmp_path: Path) -> None:
    result = Result.model_validate(measured)
    expected = [f"performance-{name}.svg" for name in PLOTS if TABLES[name](result) != NOT_MEASURED]
    assert [path.name for path in draw(result, tmp_path) if path.suffix == ".svg"] == expected
