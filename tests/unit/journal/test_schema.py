"""The description of the schema names all that there is."""

from pathlib import Path

import pytest

from controller_core.journal.changes import Kind
from controller_core.journal.records import Delta, Line

DESCRIPTION = (Path(__file__).resolve().parents[3] / "docs" / "journal.md").read_text()


@pytest.mark.parametrize("name", [*Line.model_fields, *Delta.model_fields, *Kind])
def test_every_field_and_kind_is_described(name: str) -> None:
    assert f"`{name}`" in DESCRIPTION
