"""Lines for the terminal do not disturb a test that runs meanwhile."""

import io
import sys
from contextlib import redirect_stdout

import pytest

from tests.terminal import show_in_terminal


def test_a_test_keeps_the_stream_that_it_has_put_in_the_place_of_the_output(pytestconfig: pytest.Config) -> None:
    with redirect_stdout(io.StringIO()) as own:
        with show_in_terminal(pytestconfig):
            pass
        sys.stdout.write("kept")
    assert own.getvalue() == "kept"
