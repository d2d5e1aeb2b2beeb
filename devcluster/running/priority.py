"""Priorities of builds: a step inherits its starter's niceness, and a waiting process lends its priority to the holder.

If Linux has autogroups, it shares the cores first between sessions, and then between threads by niceness. A user may
raise the priority of his own sessions. Only root may raise a thread again, so other users' threads stay as they are.
"""

import os
from contextlib import suppress
from pathlib import Path


def share_niceness(pid: int) -> None:
    """Give the session of a process that we started our own niceness."""
    _set_session(pid, os.nice(0))


def lend_priority(pid: int) -> None:
    """Raise a process and all its descendants to our priority; those with a higher priority keep it.

    Processes that they start during the call may be missed: repeat it while waiting.
    """
    ours = os.nice(0)
    for each in _list_descendants(pid):
        with suppress(OSError):
            if _session_niceness(each) > ours:
                _set_session(each, ours)
            for thread in _threads(each):
                if os.getpriority(os.PRIO_PROCESS, int(thread.name)) > ours:
                    os.setpriority(os.PRIO_PROCESS, int(thread.name), ours)


def _list_descendants(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        with suppress(OSError):
            found += [int(child) for thread in _threads(parent) for child in (thread / "children").read_text().split()]
    return found


def _threads(pid: int) -> list[Path]:
    return list(Path(f"/proc/{pid}/task").iterdir())


def _session_niceness(pid: int) -> int:
    """Return the niceness in a line such as `/autogroup-12 nice 10`, or the highest priority without autogroups."""
    try:
        return int(Path(f"/proc/{pid}/autogroup").read_text().split()[-1])
    except (IndexError, OSError):
        return -20


def _set_session(pid: int, niceness: int) -> None:
    with suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(niceness))
