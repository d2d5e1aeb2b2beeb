"""A plugin of pytest that fails a test if it takes too much CPU.

It measures CPU time, not wall time: a busy machine makes a test slow, but hardly more expensive. Threads count, and so do
child processes that have ended. Setup and call of a test count. Fixtures of a wider scope than one test do not count,
because their cost would fall on the test that happens to run first; neither do teardowns, for the same reason. Tests with
real servers or Spark have no limit, nor tests marked `nightly`, nor property tests with the examples of `make nightly`.
"""

import resource
import time
from collections.abc import Generator
from typing import Any, Final

import hypothesis
import pytest

LIMIT_S: Final = 5.0
_UNLIMITED: Final = ("real", "spark", "nightly")


class CpuLimit:
    """Fails each test that takes more than `limit_s` seconds of CPU."""

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self.limit_s = limit_s
        self._shared_s = 0.0
        self._setup_s = 0.0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Generator[None, Any, Any]:
        self._shared_s, began_s = 0.0, _cpu_s()
        result = yield
        self._setup_s = _cpu_s() - began_s - self._shared_s
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        shared_s, began_s = self._shared_s, _cpu_s()
        result = yield
        if fixturedef.scope != "function":
            # A shared fixture may set up others, whose time is part of its own.
            self._shared_s = shared_s + _cpu_s() - began_s
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._shared_s, began_s = 0.0, _cpu_s()
        result = yield
        took_s = self._setup_s + _cpu_s() - began_s - self._shared_s
        if took_s > self.limit_s and _is_limited(item):
            pytest.fail(
                f"took {took_s:.1f} s of CPU, and a test without servers may take {self.limit_s:g} s: make it smaller,"
                ' or mark it `@pytest.mark.nightly("why")`',
                pytrace=False,
            )
        return result


def _is_limited(item: pytest.Item) -> bool:
    has_more_examples = hypothesis.settings.get_current_profile_name() == "nightly"
    return not has_more_examples and not any(item.get_closest_marker(name) for name in _UNLIMITED)


def _cpu_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
