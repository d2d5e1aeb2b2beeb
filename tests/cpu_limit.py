"""A plugin of pytest that fails a test if it takes too much CPU.

It measures CPU time, not wall time. The same work takes more CPU time on a slower machine, and on one whose cores share
their caches with other work. So the time of a test that took long is divided by the slowness of the machine: what a fixed
piece of work takes right after the test, compared with a two-core development machine. Threads count, and so do child
processes that have ended. Setup and call of a test count. Fixtures of a wider scope than one test do not count,
because their cost would fall on the test that happens to run first; neither do teardowns, for the same reason. Tests with
real servers or Spark have no limit, nor tests marked `nightly`, nor property tests with the examples of `make nightly`.
"""

import gc
import json
import resource
import time
from collections.abc import Callable, Generator
from typing import Any, Final

import hypothesis
import pytest

LIMIT_S: Final = 5.0
_UNLIMITED: Final = ("real", "spark", "nightly")
_WORK_S: Final = 0.015
"""The result of `_work_s` on an idle development machine."""


class CpuLimit:
    """Fails each test that takes more than `limit_s` seconds of CPU."""

    def __init__(self, limit_s: float = LIMIT_S, slowness: Callable[[], float] | None = None) -> None:
        self.limit_s = limit_s
        self._slowness = slowness or slowness_now
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
        if took_s > self.limit_s and _is_limited(item) and took_s / (slowness := self._slowness()) > self.limit_s:
            pytest.fail(
                f"took {took_s:.1f} s of CPU on a machine that is {slowness:.1f} times slower than the one that limits are"
                f" for, and a test without servers may take {self.limit_s:g} s there: make it smaller,"
                ' or mark it `@pytest.mark.nightly("why")`',
                pytrace=False,
            )
        return result


def _is_limited(item: pytest.Item) -> bool:
    has_more_examples = hypothesis.settings.get_current_profile_name() == "nightly"
    return not has_more_examples and not any(item.get_closest_marker(name) for name in _UNLIMITED)


def slowness_now() -> float:
    """Return how many times slower than a development machine this one is now; 1 if it is as fast or faster."""
    collects = gc.isenabled()
    gc.disable()  # its cost depends on what else the process holds
    try:
        return max(1.0, min(_work_s() for _ in range(3)) / _WORK_S)
    finally:
        if collects:
            gc.enable()


def _work_s() -> float:
    """Return the CPU time of a piece of work like that of our tests: objects, dictionaries, text."""
    began_s = time.thread_time()
    rows = [{"number": number, "name": f"row-{number}"} for number in range(20_000)]
    read = json.loads(json.dumps(rows))
    assert {row["name"]: row for row in read}["row-7"]["number"] == 7
    return time.thread_time() - began_s


def _cpu_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
