"""The gaps between acknowledgements, and their tables in docs/performance.md."""

from pathlib import Path

import pytest

from bench.broker_stops.gaps import find_longest_gap
from bench.broker_stops.report import Gap, Result, fill_document, make_gaps_table
from tests.e2e.toolbox import Acknowledgement

DOCS = Path(__file__).resolve().parents[3] / "docs"


def make_acknowledged(*seen: tuple[int, float]) -> list[Acknowledgement]:
    return [
        Acknowledgement(value=value, partition=partition, at_s=at_s) for value, (partition, at_s) in enumerate(seen)
    ]


@pytest.mark.parametrize(
    ("since", "longest"),
    [(0, 5.0), (3, 2.0), (4, 0.0)],
    ids=["of one partition", "that ends later", "nothing more"],
)
def test_the_longest_gap_is_that_of_a_single_partition(since: int, longest: float) -> None:
    seen = make_acknowledged((0, 1.0), (1, 2.0), (0, 6.0), (1, 4.0))
    assert find_longest_gap(seen, since=since) == longest


def test_each_kind_of_stop_has_all_its_runs_in_one_row() -> None:
    gaps = [
        Gap(stop="a stop", producer=producer, run=run, seconds=run / 10, errors=0, timeouts=run, load_before=1.0)
        for run in (1, 2)
        for producer in ("new", "old")
    ]
    assert make_gaps_table(Result(gaps=tuple(gaps))).splitlines()[-1] == "| a stop | 0.10 0.20 | 0.10 0.20 | 0 | 6 |"


def test_the_tables_of_the_document_are_those_of_its_result_file() -> None:
    document = (DOCS / "performance.md").read_text()
    result = Result.model_validate_json((DOCS / "performance-stops.json").read_text())
    assert document == fill_document(document, result)
