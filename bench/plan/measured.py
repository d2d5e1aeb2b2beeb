"""One plan in a process of its own: a snapshot's file in, the plan's file out, start and files included.

python -m bench.plan.measured SNAPSHOT.npz PLAN.npz '{"mode": "drain", "brokers": [0]}'
"""

import json
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.plan.files import read_snapshot
from controller_planner.goals import Goals, Mode
from controller_planner.planning import make_plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of one plan."""

    seconds: float
    processor_seconds: float
    memory_gib: float
    plan_hash: str


def measure_plan(snapshot: Path, goals: Goals) -> Cost:
    """Return the cost of a plan in a new process."""
    wanted = json.dumps({"mode": goals.mode, "brokers": goals.brokers})
    began = time.perf_counter()
    command = [
        sys.executable,
        "-m",
        "bench.plan.measured",
        str(snapshot),
        str(snapshot.with_suffix(".plan.npz")),
        wanted,
    ]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603  (our own)
    return Cost(seconds=time.perf_counter() - began, **json.loads(printed))


def main() -> None:
    """Make the plan that the arguments ask for, and print what it cost."""
    snapshot, output, wanted = sys.argv[1:]
    goals = json.loads(wanted)
    plan = make_plan(read_snapshot(Path(snapshot)), Goals(mode=Mode(goals["mode"]), brokers=tuple(goals["brokers"])))
    np.savez(output, partition=plan.partition, after=plan.after, batch=plan.batch, reasons=plan.reasons)
    used = resource.getrusage(resource.RUSAGE_SELF)
    cost = {
        "processor_seconds": used.ru_utime + used.ru_stime,
        "memory_gib": used.ru_maxrss / 2**20,
        "plan_hash": plan.compute_hash(),
    }
    sys.stdout.write(json.dumps(cost))


if __name__ == "__main__":
    main()
