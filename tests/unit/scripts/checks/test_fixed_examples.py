"""Level 1 has the same cases in every run: also those that Hypothesis makes."""

import importlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def test_the_examples_of_a_property_test_do_not_depend_on_the_modules_that_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples: list[int] = []

    @settings(settings.get_profile("derandomized"), max_examples=500)
    @given(st.integers())
    def collect(number: int) -> None:
        examples.append(number)

    collect()
    before = [*examples]
    examples.clear()
    module = tmp_path / "magic.py"
    module.write_text("MAGIC = [" + ", ".join(str(98_765_000 + number) for number in range(100)) + "]")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("magic")
    collect()
    assert examples == before
