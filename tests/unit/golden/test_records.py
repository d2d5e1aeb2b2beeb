"""The records of `tests/golden`, and their known differences."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.golden.answers import FOLDER, read
from tests.unit.golden.differences import DIFFERENCES, Difference

RECORDS = sorted(FOLDER.glob("*/*.json"))


def values(of: Any, field: str = "") -> Iterator[tuple[str, Any]]:
    """Yields each value of an answer, with its name."""
    yield field, of
    for name, value in of.items() if isinstance(of, dict) else ():
        yield from values(value, name)
    for value in of if isinstance(of, list) else ():
        yield from values(value, field)


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_each_record_is_of_a_test_that_runs_here(path: Path) -> None:
    tests = vars(import_module(f"tests.unit.golden.{path.stem}"))
    assert [name for name in read(path) if name.partition("[")[0] not in tests] == []


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: str(difference.ours)[:40])
def test_kafka_answered_what_is_said_to_differ(difference: Difference) -> None:
    answers = [exchange["answer"] for path in RECORDS for test in read(path).values() for exchange in test]
    assert any((difference.field, difference.kafkas) in values(answer) for answer in answers)
