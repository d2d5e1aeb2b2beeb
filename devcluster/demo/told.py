"""Runs `kontroller history` for a demo: the command, shown on the stage, and the tables beside its page."""

import json
import subprocess
from pathlib import Path
from typing import Any

from devcluster.clusters.kontroller import run_command
from devcluster.demo.stage import Stage


def kontroller_history(stage: Stage, *arguments: str, timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Run the command and show its output, and its errors if it fails."""
    done = run_command("history", *arguments, timeout_s=timeout_s)
    stage.show(f"kontroller history {' '.join(arguments)}", done.stdout + (done.stderr if done.returncode else ""))
    return done


def rows_of(report: Path, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table of a report; empty if the report lacks the table."""
    path = report / "tables" / f"{table}.json"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
