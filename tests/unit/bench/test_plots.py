"""Plots are made of any result, always the same, and stand on a page with the tables."""

import re
from pathlib import Path

import pytest

from bench.report.document import NOT_MEASURED
from bench.report.result import Result
from bench.report.tables import CAPTIONS, TABLES
from tests.unit.bench.rows import run, transfer

pytest.importorskip("matplotlib", reason="the extra `bench` is not installed: make lint")

from bench.report.page import merge_results, write_docs, write_report
from bench.report.plots import PLOTS, draw


def test_a_report_has_every_table_and_plot_and_the_same_result_makes_the_same_plots(
    result: Result, tmp_path: Path
) -> None:
    source = tmp_path / "result.json"
    source.write_text(result.model_dump_json())
    page, *plots = write_report([source], tmp_path / "report")
    assert [path.name for path in plots] == [f"performance-{name}.{kind}" for name in PLOTS for kind in ("png", "svg")]
    text = page.read_text()
    assert all(table(result) in text for table in TABLES.values())
    shown = set(re.findall(r"\((performance-\w+\.svg)\)", text))
    assert shown == {path.name for path in plots if path.suffix == ".svg"}
    assert list(PLOTS) == list(CAPTIONS)
    again = draw(result, PLOTS, tmp_path / "again")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in plots]


def test_the_documented_run_is_replaced_as_a_whole(result: Result, tmp_path: Path) -> None:
    for measured in result, result.model_copy(update={"runs": (), "latency": ()}):
        (tmp_path / "performance.md").write_text("".join(f"<!-- begin: {n} -->\n<!-- end: {n} -->\n" for n in TABLES))
        (tmp_path / "result.json").write_text(measured.model_dump_json())
        kept, document, *plots = write_docs([tmp_path / "result.json"], tmp_path)
        assert Result.load(kept) == measured
        assert TABLES["writes"](result) in document.read_text()
        assert sorted((tmp_path / "images").iterdir()) == sorted(plots)
    assert [path.name for path in plots] == ["performance-writes.png", "performance-writes.svg"]


def test_the_rows_of_several_result_files_become_those_of_one(result: Result, tmp_path: Path) -> None:
    controllers, writes = tmp_path / "controllers.json", tmp_path / "writes.json"
    controllers.write_text(result.model_dump_json(exclude={"writes"}))
    writes.write_text(result.model_dump_json(include={"writes"}))
    assert Result.model_validate(merge_results([controllers, writes])) == result
    assert len(merge_results([controllers, controllers])["runs"]) == 2 * len(result.runs)


@pytest.mark.parametrize("content", ["no JSON", '{"runs": [{"controller": "kafka"}]}'])
def test_a_file_that_is_no_result_is_named(content: str, tmp_path: Path) -> None:
    source = tmp_path / "result.json"
    source.write_text(content)
    with pytest.raises(ValueError, match=r"result\.json is no result of a benchmark"):
        merge_results([source])


@pytest.mark.parametrize(
    "measured",
    [{}, {"runs": [run("kontroller", 10_000, 2.0)]}, {"writes": [transfer("awaited", 1, 4.0, syncs=False)]}],
    ids=["nothing", "us alone", "writes that do not wait for the disk"],
)
def test_there_are_plots_of_what_is_in_the_tables(measured: dict[str, object], tmp_path: Path) -> None:
    result = Result.model_validate(measured)
    expected = [f"performance-{name}.svg" for name in PLOTS if TABLES[name](result) != NOT_MEASURED]
    assert [path.name for path in draw(result, PLOTS, tmp_path) if path.suffix == ".svg"] == expected
