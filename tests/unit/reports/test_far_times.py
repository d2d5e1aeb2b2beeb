"""Times that no calendar has never stop a page, nor a file beside it, and a file is written as a whole or not at all."""

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kontroller.history.reports import words
from kontroller.history.reports.export import replace_file, write_json_lines
from kontroller.history.reports.facts import Column
from kontroller.history.reports.period import is_moment, micros
from kontroller.history.reports.rendering.cells import cell

YEAR_58210_US = 1_774_860_912_000_000_000
ANY_US = st.integers(-(2**63), 2**63 - 1)
AT = pyarrow.timestamp("us", tz="UTC")
POINTER = pyarrow.struct([("seq", pyarrow.int64()), ("event_time", AT)])


@given(ANY_US)
@example(YEAR_58210_US)
def test_a_cell_has_the_time_or_no_value(at_us: int) -> None:
    shown = cell(at_us, Column(title="At", field="at", kind="time"))
    assert bool(shown.instant) == is_moment(at_us) == (shown.text != words.NO_VALUE)


@given(ANY_US)
@example(YEAR_58210_US)
def test_a_line_of_json_has_the_time_or_null(at_us: int) -> None:
    read = _write_and_read({"seq": [1, 2], "at": pyarrow.array([at_us, 0], AT)})
    assert [row["seq"] for row in read] == [1, 2]
    assert (read[0]["at"] is not None) == is_moment(at_us)
    assert read[1]["at"] == "1970-01-01T00:00:00Z"


def test_a_far_time_within_a_list_takes_no_other_value_along() -> None:
    evidence = pyarrow.array(
        [[{"seq": 1, "event_time": YEAR_58210_US}], [{"seq": 2, "event_time": 0}]], pyarrow.list_(POINTER)
    )
    read = _write_and_read({"detail": ["one", "two"], "evidence": evidence})
    assert [row["detail"] for row in read] == ["one", "two"]
    assert read[0]["evidence"] is None
    assert read[1]["evidence"] == [{"seq": 2, "event_time": "1970-01-01T00:00:00Z"}]


def test_a_file_that_could_not_be_written_is_the_one_of_before(tmp_path: Path) -> None:
    path = tmp_path / "controllers.json"
    path.write_text("before")
    with pytest.raises(ZeroDivisionError), replace_file(path) as file:
        file.writelines(b"%d" % (6 // (3 - number)) for number in range(4))
    assert [(found.name, found.read_text()) for found in tmp_path.iterdir()] == [("controllers.json", "before")]
    with replace_file(path) as file:
        file.write(b"after")
    assert [(found.name, found.read_text()) for found in tmp_path.iterdir()] == [("controllers.json", "after")]


def test_the_last_moment_of_the_calendar_is_one() -> None:
    last_us = micros(datetime.max.replace(tzinfo=UTC))
    assert (is_moment(last_us), is_moment(last_us + 1)) == (True, False)


def _write_and_read(columns: dict[str, object]) -> list[dict[str, object]]:
    """Return the lines of JSON of a table with these columns."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "some.parquet"
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
        write_json_lines(path)
        return [json.loads(line) for line in path.with_suffix(".json").read_text().splitlines()]
