"""Processor time of other processes."""

import os
from pathlib import Path


def cpu_s(pid: int) -> float:
    """Return the processor seconds of a process so far, to some hundredths."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
