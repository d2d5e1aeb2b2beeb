"""The machine and the versions of a measurement, because figures depend on them."""

import os
import platform
import re
from pathlib import Path
from typing import Any

from devcluster.building.java import KAFKA_VERSION
from devcluster.building.toolchain import require, run


def machine() -> dict[str, Any]:
    """Return the processor, the memory, and the versions of the software."""
    processors = re.findall(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    java = run([require("java"), "--version"], what="asking Java for its version").splitlines()[0]
    return {
        "processor": processors[0] if processors else platform.processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(int(memory[1]) / 2**20, 1) if memory else None,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "java": java,
        "kafka": KAFKA_VERSION,
    }
