"""The seed map names only existing things, and tests of the kind that it says. Its checker finds the errors."""

from functools import cache
from pathlib import Path

import pytest

from tests.unit.seed_map import Checker, Row, rows

ROOT = Path(__file__).resolve().parents[2]
ROWS = list(rows((ROOT / "docs" / "seed-map.md").read_text()))


@cache
def check_map() -> tuple[Checker, list[tuple[str, list[str]]]]:
    """Check all rows, which takes seconds. Return the checker and the wrong statements of each row."""
    checker = Checker(root=ROOT)
    return checker, [(str(row), checker.problems(row)) for row in ROWS]


def test_all_that_a_row_names_is_there() -> None:
    _, found = check_map()
    assert [(row, problems) for row, problems in found if problems] == []


def test_no_part_of_the_map_was_overlooked() -> None:
    assert len(ROWS) > 100
    checker, _ = check_map()
    assert len(checker.named) > 200
    assert {row.section.split(":")[0] for row in ROWS} >= {"Seed 001", "Seed 002", "Seed 004", "Operations"}


A_TEST = "U `unit/test_seed_map.py::test_no_part_of_the_map_was_overlooked`"


def problems(where: str, shown_by: str = A_TEST, *, above: tuple[tuple[str, str], ...] = ()) -> list[str]:
    """Return the errors of a row, below others of its section."""
    checker = Checker(root=ROOT)
    for cells in above:
        checker.problems(Row(section="s", part="above", where=cells[0], shown_by=cells[1]))
    return checker.problems(Row(section="s", part="p", where=where, shown_by=shown_by))


@pytest.mark.parametrize(
    "where",
    [
        "",
        "a broker's business; `/brokers/ids`",
        "`model/transitions.py` `PartitionStatus`, `PARTITION_TRANSITIONS`",
        "`model/transitions.py` `PartitionStatus.NEW` and `_sort`",
        "`model/transitions.py`, `features.py` `apply_updates`",
        '`zk/codecs/brokers.py`; Kafka writes `"min_version"`',
        "`operator/controller_operator/resources/feature_set.py` `FeatureSet`",
        "`charts/kontroller`; `controller_core/journal`",
    ],
)
def test_a_row_that_is_right_has_no_problem(where: str) -> None:
    assert problems(where) == []


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("`model/transition.py`", "there is no model/transition.py"),
        ("`model/transitions.py` `sort_topics`", "does not define sort_topics"),
        ("`model/transitions.py` `PartitionStatus.GONE`", "does not define PartitionStatus.GONE"),
        ("`model/transitions.py` `NEW`", "does not define NEW"),
        ("`model/transitions.py` `Enum`", "does not define Enum"),
        ("`model/transitions.py` `apply_updates`; `model/features.py`", "does not define apply_updates"),
        ("`sort_partitions`", "None does not define sort_partitions"),
        ('`zk/codecs/brokers.py`, `"no_such_field"`', '"no_such_field" does not stand in'),
        ("`charts/kontroler`", "there is no charts/kontroler"),
        ("`Kafka's own`", "is neither a path nor a name"),
    ],
)
def test_what_is_not_there_is_found(where: str, problem: str) -> None:
    (found,) = problems(where)
    assert problem in found


def test_a_function_without_a_module_is_of_the_last_one_above() -> None:
    above = (("`model/transitions.py` `sort_replicas`", A_TEST),)
    assert problems("`sort_partitions`", above=above) == []
    assert len(problems("`apply_updates`", above=above)) == 1


@pytest.mark.parametrize(
    ("shown_by", "problem"),
    [
        ("", "nothing says what shows it"),
        ("U `unit/test_no_such.py`", "there is no tests/unit/test_no_such.py"),
        ("U `unit/seed_map.py`", "tests/unit/seed_map.py has no test "),
        ("U `unit/test_seed_map.py::test_no_such`", "tests/unit/test_seed_map.py has no test test_no_such"),
        ("U `unit/test_seed_map.py::problems`", "tests/unit/test_seed_map.py has no test problems"),
        ("U `unit/admin/test_update_features.py::TestNone::test_x`", "has no test TestNone.test_x"),
        ("U `unit/admin/test_update_features.py::test_a_dead_broker_does_not_count`", "has no test test_a_dead"),
        ("S `spark/test_store.py::test_no_such`", "tests/spark/test_store.py has no test test_no_such"),
        ("S `spark/answers/test_no_such.py`", "there is no tests/spark/answers/test_no_such.py"),
        ("R `unit/test_seed_map.py`", "unit/test_seed_map.py is not of the kind R"),
        ("U `real/test_features.py`", "real/test_features.py is not of the kind U"),
        ("U `spark/test_store.py`", "spark/test_store.py is not of the kind U"),
        ("`unit/test_seed_map.py`", "unit/test_seed_map.py has no kind"),
        ("X `unit/test_seed_map.py`", "X is no kind of tests"),
        ("the same", "there are no tests above that could be the same"),
        ("`make nothing-at-all`", "there is no make nothing-at-all"),
        (f"{A_TEST} (`NoSuch`)", "NoSuch is no test, and unit/test_seed_map.py does not define it"),
    ],
)
def test_a_test_that_is_not_there_or_of_another_kind_is_found(shown_by: str, problem: str) -> None:
    assert problem in problems("", shown_by)[0]


@pytest.mark.parametrize(
    "shown_by",
    [
        f"the same; {A_TEST}",
        "R `contract/test_broker_link.py`; S `spark/test_store.py`",
        "U `unit/admin/test_update_features.py::TestVersion0::test_its_only_flag_is_whether_a_downgrade_is_allowed`",
        "U `unit/controller/test_faults.py` (`DeletionOfMoving`); `make demo`",
        "U `unit/golden/test_admin_requests.py::test_growth_is_judged_alike`",
        "U `unit/golden/test_section_1_protocol.py::test_an_empty_isr_is_refused`",
    ],
)
def test_tests_that_are_there_are_found(shown_by: str) -> None:
    assert problems("", shown_by, above=(("", A_TEST),)) == []
