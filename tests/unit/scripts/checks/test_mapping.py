"""The test files that a change selects, and the reasons."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scripts.checks.commits import NoBaseError, nearest
from scripts.checks.estimates import UNKNOWN_S, Estimates
from scripts.checks.ledger import Ledger, Row
from scripts.checks.mapping import Mapped, Project, select

PROJECT = Path(__file__).parents[4]
NOW = datetime(2026, 3, 20, tzinfo=UTC)


@pytest.fixture(scope="module")
def project() -> Project:
    """The project, with the graph that all tests here share."""
    found = Project(PROJECT)
    found.find_covering(["controller_core/names.py"])
    return found


def find_covering(project: Project, *changed: str) -> dict[str, Mapped]:
    return {each.file: each for each in project.find_covering(changed)}


def test_a_touched_file_of_tests_is_selected_and_runs_three_times_with_servers(project: Project) -> None:
    found = find_covering(project, "tests/real/controller/test_log_dirs.py")["tests/real/controller/test_log_dirs.py"]
    assert (found.reason, found.rank, found.repetitions) == ("the change touches it", 0, 3)


def test_the_seed_map_names_the_tests_of_a_module(project: Project) -> None:
    found = find_covering(project, "controller_core/controller/reassigning/completion.py")
    procedure = found["tests/real/conformance/procedures/test_reassignment.py"]
    assert procedure.rank == 1
    assert "the seed map names it" in procedure.reason


def test_servers_cover_what_their_processes_import(project: Project) -> None:
    found = find_covering(project, "controller_core/controller/reassigning/completion.py")
    assert found["tests/real/controller/faults/test_bad_input.py"].rank == 2


def test_a_helper_of_tests_selects_the_tests_that_import_it(project: Project) -> None:
    found = find_covering(project, "tests/real/operator/operated.py")
    assert found["tests/real/operator/kinds/test_topics.py"].distance == 1


def test_a_conftest_selects_the_files_below_it(project: Project) -> None:
    found = find_covering(project, "tests/spark/conftest.py")
    assert {"tests/spark/test_store.py", "tests/spark/delta/test_delta.py"} <= set(found)
    assert not any(file.startswith("tests/real/") for file in found)


def test_a_template_of_the_chart_selects_the_tests_that_read_charts(project: Project) -> None:
    found = find_covering(project, "charts/kontroller/templates/_helpers.tpl")
    assert any(file.startswith("tests/real/chart/") for file in found)
    assert not any(file.startswith("tests/spark/") for file in found)


def test_unit_tests_are_not_mapped_because_level_1_runs_them(project: Project) -> None:
    assert "tests/unit/model/test_transitions.py" not in find_covering(project, "controller_core/model/transitions.py")


def test_a_page_of_prose_selects_nothing_with_servers(project: Project) -> None:
    assert find_covering(project, "CHANGELOG.md") == {}


def make_mapped(file: str, rank: int, distance: int = 0) -> Mapped:
    return Mapped(file=file, reason="", rank=rank, distance=distance)


def make_estimates(**rows: Row) -> Estimates:
    """Return what a ledger with rows of files in tests/real says."""
    ledger = Ledger(rows={f"tests/real/{name}": row for name, row in rows.items()})
    return Estimates(ledger=ledger, cases={})


def names(chosen: Sequence[Mapped]) -> list[str]:
    return [each.file for each in chosen]


def test_touched_files_come_first_then_those_of_the_seed_map_then_the_nearest_importers() -> None:
    found = [
        make_mapped("tests/real/far", 2, 3),
        make_mapped("tests/spark/near", 2, 1),
        make_mapped("tests/real/near", 2, 1),
    ]
    found += [make_mapped("tests/spark/seed", 1), make_mapped("tests/spark/touched", 0)]
    chosen = select(found, make_estimates(), 100 * UNKNOWN_S).chosen
    assert names(chosen) == [
        "tests/spark/touched",
        "tests/spark/seed",
        "tests/real/near",
        "tests/spark/near",
        "tests/real/far",
    ]


def test_what_does_not_fit_into_the_budget_is_left_out_and_named() -> None:
    estimates = make_estimates(long=Row(ran=NOW, passed=NOW, quick_seconds=500))
    found = [make_mapped("tests/real/long", 1), make_mapped("tests/real/unknown", 2)]
    selection = select(found, estimates, 400)
    assert (names(selection.chosen), names(selection.left_out)) == (["tests/real/unknown"], ["tests/real/long"])


def test_a_touched_file_costs_three_runs() -> None:
    assert make_mapped("tests/real/x", 0).cost_s(make_estimates()) == 3 * UNKNOWN_S


def test_among_equals_the_one_that_was_not_run_for_the_longest_time_is_first() -> None:
    estimates = make_estimates(a=Row(ran=NOW, passed=NOW, quick_seconds=1))
    found = [make_mapped("tests/real/a", 2), make_mapped("tests/real/b", 2)]
    assert names(select(found, estimates, 1000).chosen) == ["tests/real/b", "tests/real/a"]


def test_the_base_is_the_nearest_ancestor_that_has_passed() -> None:
    assert nearest(["c", "b", "a"], {"a", "b", "elsewhere"}) == "b"


def test_without_an_ancestor_that_has_passed_the_user_is_told_to_name_one() -> None:
    with pytest.raises(NoBaseError, match="BASE="):
        nearest(["c", "b"], {"elsewhere"})
