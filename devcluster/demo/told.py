"""What a demo has told of it by `kontroller history`: the command, shown on the stage, and the tables beside its page."""

import json
import subprocess
from pathlib import Path
from typing import Any

from devcluster.clusters.kontroller import run_command
from devcluster.demo.stage import Stage


def kontroller_history(stage: Stage, *arguments: str, timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Runs the command and shows what it says, its errors where it fails."""
    done = run_command("history", *arguments, timeout_s=timeout_s)
    stage.show(f"kontroller history {' '.join(arguments)}", done.stdout + (done.stderr if done.returncode else ""))
    return done


def rows_of(report: Path, table: str) -> list[dict[str, Any]]:
    """The rows of a table of a report; none where it has no such table."""
    path = report / "tables" / f"{table}.json"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
