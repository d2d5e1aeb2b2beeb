"""The priorities of builds: a step is as nice as its starter, and a waiter lends its priority to what it waits for.

Linux shares the cores between sessions first where it has autogroups, and then between threads by their niceness. A user
may raise the sessions of his own processes. Only root may raise a thread again, so the threads stay as they are for others.
"""

import os
from contextlib import suppress
from pathlib import Path


def share_niceness(pid: int) -> None:
    """Makes the session of a process that we started as nice as we are."""
    _set_session(pid, os.nice(0))


def lend_priority(pid: int) -> None:
    """Raises a process and all its descendants to our priority; those whose priority is higher keep it.

    What they start while this runs may be missed: repeat it while waiting for them.
    """
    ours = os.nice(0)
    for each in _with_descendants(pid):
        with suppress(OSError):
            if _session_niceness(each) > ours:
                _set_session(each, ours)
            for thread in _threads(each):
                if os.getpriority(os.PRIO_PROCESS, int(thread.name)) > ours:
                    os.setpriority(os.PRIO_PROCESS, int(thread.name), ours)


def _with_descendants(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        with suppress(OSError):
            found += [int(child) for thread in _threads(parent) for child in (thread / "children").read_text().split()]
    return found


def _threads(pid: int) -> list[Path]:
    return list(Path(f"/proc/{pid}/task").iterdir())


def _session_niceness(pid: int) -> int:
    """Return the niceness in a line such as `/autogroup-12 nice 10`; the highest priority if there are no autogroups."""
    try:
        return int(Path(f"/proc/{pid}/autogroup").read_text().split()[-1])
    except (IndexError, OSError):
        return -20


def _set_session(pid: int, niceness: int) -> None:
    with suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(niceness))
