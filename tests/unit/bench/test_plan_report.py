"""The tables of plans, and the bars that they name as missed."""

from pathlib import Path

from bench.plan.plot import draw_ways, plot_ways
from bench.plan.report import (
    PLOT,
    BacktestRow,
    InstanceRow,
    Result,
    SmallRow,
    add_plot_of_others,
    fill_document,
    make_backtests_table,
    make_instances_table,
    make_missed_list,
    make_others_table,
    make_small_table,
    write_docs,
)
from bench.report.document import NOT_MEASURED

DOCS = Path(__file__).resolve().parents[3] / "docs"

ROW = InstanceRow(
    instance="a",
    mode="rebalance",
    partitions=1_000,
    brokers=9,
    seconds=0.5,
    processor_seconds=0.456,
    memory_gib=0.1,
    before=(1.5, 2.0, 1.0, 1.0, 1.0),
    after=(1.05, 1.05, 1.0, 1.0, 1.0),
    gigabytes=1234.5,
    times_bound=1.0712,
    next_leaders=(4, 5),
    others={"greedy": (1.2, 1.5)},
    missed=("a: 1.071 times the bytes of the bound; the bar is 1.06",),
)
SMALL = SmallRow(instance="b", excess=0.0, optimum_excess=0.0, times_bytes=1.5, is_proven=False, missed=("b: x",))
BACKTEST = BacktestRow(instance="c", losses=1_000, partitions=100_000, seconds=3.5, missed=("c: y",))
RESULT = Result(instances=(ROW,), small=(SMALL,), backtests=(BACKTEST,))


def test_a_row_has_the_cost_the_balance_and_the_bytes_over_the_bound() -> None:
    last = make_instances_table(RESULT).splitlines()[-1]
    assert last == (
        "| a | rebalance | 1,000 on 9 | 0.50 | 0.46 | 0.10 | 1.50 2.00 1.00 1.00 1.00 | 1.050 1.050 1.000 1.000 1.000 "
        "| 1,234 | 1.071 | 4 of 5 |"
    )
    assert make_others_table(RESULT).splitlines()[-1] == "| a | greedy | 1.20 | 1.50 |"
    assert make_small_table(RESULT).splitlines()[-1] == "| b | 0.000 | 0.000 | 1.500 | no |"
    assert make_backtests_table(RESULT).splitlines()[-1] == "| c | 1,000 | 100,000 | 3.50 |"


def test_each_missed_bar_is_named() -> None:
    assert make_missed_list(RESULT).splitlines() == [f"- {ROW.missed[0]}", "- b: x", "- c: y"]
    assert make_missed_list(Result(instances=(ROW.model_copy(update={"missed": ()}),))) == "No bar was missed."
    assert make_missed_list(Result()) == NOT_MEASURED


def test_the_tables_of_the_document_are_those_of_its_result_file_or_not_measured() -> None:
    file = DOCS / "performance-plan.json"
    result = Result.model_validate_json(file.read_text()) if file.exists() else Result()
    document = (DOCS / "performance.md").read_text()
    assert document == fill_document(document, result)


def test_the_plot_has_each_way_and_is_in_the_document_if_there_are_other_ways(tmp_path: Path) -> None:
    figure = plot_ways(RESULT)
    assert figure is not None
    dots = {each.get_label(): each.get_offsets().tolist() for each in figure.axes[0].collections}  # type: ignore[union-attr]
    assert dots == {"Kontroller": [[1.0, 1.05]], "greedy": [[1.2, 1.5]]}
    assert draw_ways(RESULT, tmp_path) == [tmp_path / PLOT]
    assert (tmp_path / PLOT).read_text().startswith("<?xml")
    assert add_plot_of_others(RESULT).startswith(
        f"![Largest load over the bytes copied, for plans and other ways]({PLOT})"
    )
    alone = Result(instances=(ROW.model_copy(update={"others": {}}),))
    assert (plot_ways(alone), draw_ways(alone, tmp_path)) == (None, [])
    assert add_plot_of_others(alone) == NOT_MEASURED


def test_a_result_file_fills_the_document(tmp_path: Path) -> None:
    source = tmp_path / "plan.json"
    source.write_text(RESULT.model_dump_json())
    (tmp_path / "performance.md").write_text((DOCS / "performance.md").read_text())
    written = write_docs([source], tmp_path)
    assert [path.name for path in written] == ["performance-plan.json", "performance.md"]
    assert f"- {ROW.missed[0]}" in (tmp_path / "performance.md").read_text()
