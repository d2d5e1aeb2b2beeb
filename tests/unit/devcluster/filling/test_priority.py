"""A polite build gets the priority of the process that waits for it, whichever process began it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from devcluster.building.cache import cache_folder, hold_lock
from devcluster.filling.fill import fill_meanwhile
from devcluster.filling.parts import Part, find_missing
from devcluster.running.priority import lend_priority
from devcluster.running.processes import wait_until
from tests.unit.devcluster.filling.test_fill import BOTH, UseGo, own_cache, use_go

__all__ = ["own_cache", "use_go"]

only_root_raises = pytest.mark.skipif(os.geteuid() != 0, reason="only root may raise a thread's priority again")

# Two threads that sleep, and a child that does: all of them are to be raised.
SLEEPER = """
import subprocess, threading, time
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
child = subprocess.Popen(["sleep", "600"])
print(child.pid, flush=True)
child.wait()
"""
HOLDER = """
import sys, time
from devcluster.building.cache import hold_lock
with hold_lock("tool", "waiting"):
    print("held", flush=True)
    time.sleep(600)
"""


@contextmanager
def polite(script: str) -> Iterator[tuple[int, str]]:
    """A Python of niceness 10 in a session of its own; its id, and the first line that it printed."""
    command = ["nice", "-n", "10", sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        try:
            yield process.pid, process.stdout.readline().strip()
        finally:
            os.killpg(process.pid, 9)


def niceness(pid: int) -> set[int]:
    """The niceness of each of its threads."""
    return {os.getpriority(os.PRIO_PROCESS, int(each.name)) for each in Path(f"/proc/{pid}/task").iterdir()}


def read_niceness() -> int:
    """The niceness of `polite` processes less ten: that of this one."""
    return os.nice(0)


@only_root_raises
def test_a_process_and_all_that_it_started_are_raised_to_our_priority() -> None:
    with polite(SLEEPER) as (pid, printed):
        both = (pid, int(printed))
        assert [niceness(each) for each in both] == [{min(19, read_niceness() + 10)}] * 2
        lend_priority(pid)
        assert [niceness(each) for each in both] == [{read_niceness()}] * 2


def test_a_process_of_a_higher_priority_keeps_it() -> None:
    """The waiter is nicer than the one that it waits for."""
    script = f"from devcluster.running.priority import lend_priority; lend_priority({os.getpid()}); print('done')"
    before = niceness(os.getpid())
    with polite(script) as (_pid, printed):
        assert printed == "done"
        assert niceness(os.getpid()) == before


def test_a_process_that_has_ended_disturbs_nobody() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    lend_priority(process.pid)


@only_root_raises
def test_a_waiter_for_a_lock_hurries_the_process_that_holds_it() -> None:
    waiter = f"{HOLDER.split('with')[0]}\nprint(flush=True)\nwith hold_lock('tool', 'waiting'): pass"
    with polite(HOLDER) as (pid, _held):
        assert niceness(pid) == {min(19, read_niceness() + 10)}
        with subprocess.Popen([sys.executable, "-c", waiter], stdout=subprocess.DEVNULL) as process:
            wait_until(lambda: niceness(pid) == {read_niceness()}, "the holder is raised")
            process.kill()


def test_the_lock_names_the_process_that_holds_it() -> None:
    for _ in range(2):
        with hold_lock("tool", "waiting"):
            assert (cache_folder() / "locks" / "tool").read_text() == str(os.getpid())


@only_root_raises
def test_a_polite_build_has_full_priority_when_it_is_waited_for(use_go: UseGo, tmp_path: Path) -> None:
    use_go(f"echo $$ > {tmp_path}/pid; until [ -e {tmp_path}/go-on ]; do sleep 0.02; done; {BOTH}")
    pid_file = tmp_path / "pid"
    with fill_meanwhile([Part.HEALTH], politely=True) as parts:
        wait_until(lambda: pid_file.exists() and bool(pid_file.read_text()), "it builds")
        pid = int(pid_file.read_text())
        assert niceness(pid) == {min(19, read_niceness() + 10)}
        with parts.hurry_builds():
            wait_until(lambda: niceness(pid) == {read_niceness()}, "the build is raised")
            (tmp_path / "go-on").touch()
            parts.wait()
    assert find_missing([Part.HEALTH]) == []
