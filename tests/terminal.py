"""The terminal, while pytest captures the output of tests."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import pytest


@contextmanager
def show_in_terminal(config: pytest.Config) -> Iterator[None]:
    """Let output reach the terminal while the block runs.

    Afterwards the streams are those of before: a test may have put its own in their place, and pytest only knows its
    own."""
    capture = config.pluginmanager.get_plugin("capturemanager")
    assert capture is not None
    with redirect_stdout(sys.stdout), redirect_stderr(sys.stderr), capture.global_and_fixture_disabled():
        yield
