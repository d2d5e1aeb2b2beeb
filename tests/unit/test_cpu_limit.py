"""A test that takes too much CPU fails, and says so; other tests pass, however long they wait."""

import sys

import pytest

from tests.cpu_limit import CpuLimit, slowness_now

pytest_plugins = ["pytester"]

BUSY = """
import subprocess, sys, threading, time
import pytest

def compute(seconds=0.3):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
"""


def run(pytester: pytest.Pytester, test: str, slowness: float = 1.0) -> pytest.RunResult:
    """Run a test that may take a tenth of a second of CPU on a machine of ours."""
    pytester.makeini("[pytest]\nmarkers = real\n spark\n nightly\nasyncio_default_fixture_loop_scope = function")
    pytester.makepyfile(BUSY + test)
    return pytester.runpytest_inprocess(
        "-p", "no:cacheprovider", plugins=[CpuLimit(limit_s=0.1, slowness=lambda: slowness)]
    )


@pytest.mark.parametrize(
    "busy",
    [
        "compute()",
        "thread = threading.Thread(target=compute); thread.start(); thread.join()",
        f"subprocess.run([{sys.executable!r}, '-c', 'for _ in range(10_000_000): pass'])",
    ],
    ids=["itself", "a thread", "a process"],
)
def test_a_test_that_takes_too_much_cpu_fails_and_says_what_to_do(pytester: pytest.Pytester, busy: str) -> None:
    result = run(pytester, f"def test_it():\n    {busy}\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*took * s of CPU*1.0 times slower*may take 0.1 s there: make it smaller,*nightly(*"])


def test_on_a_machine_that_is_slower_a_test_may_take_as_much_more(pytester: pytest.Pytester) -> None:
    run(pytester, "def test_it():\n    compute()\n", slowness=100).assert_outcomes(passed=1)


def test_no_machine_is_so_fast_that_a_test_may_take_less() -> None:
    assert slowness_now() >= 1


def test_the_fixtures_of_one_test_count(pytester: pytest.Pytester) -> None:
    result = run(pytester, "@pytest.fixture\ndef own():\n    compute()\n\ndef test_it(own): ...\n")
    result.assert_outcomes(failed=1)


@pytest.mark.parametrize(
    "test",
    [
        "def test_it():\n    time.sleep(0.3)\n",
        "@pytest.fixture(scope='module')\ndef shared():\n    compute()\n\ndef test_it(shared): ...\n",
        "@pytest.fixture(scope='module')\ndef shared():\n    compute()\n\n"
        "def test_it(request):\n    request.getfixturevalue('shared')\n",
        *(f"@pytest.mark.{mark}\ndef test_it():\n    compute()\n" for mark in ("real", "spark", "nightly")),
    ],
    ids=["waits", "shared fixture", "shared fixture in the call", "real", "spark", "nightly"],
)
def test_what_does_not_count_has_no_limit(pytester: pytest.Pytester, test: str) -> None:
    run(pytester, test).assert_outcomes(passed=1)


def test_a_test_that_fails_keeps_its_own_error(pytester: pytest.Pytester) -> None:
    result = run(pytester, "def test_it():\n    compute()\n    assert 1 == 2\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*assert 1 == 2*"])
