"""A file of results, written again with each new one, so that an interrupted run keeps its results."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.setup.machine import machine


class ResultsFile:
    """Results of several kinds, each a list, with the start time, the machine and the settings."""

    def __init__(self, file: Path, settings: dict[str, Any], *kinds: str) -> None:
        self.file = file
        self.content: dict[str, Any] = {
            "began": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "settings": settings,
            **{kind: [] for kind in kinds},
        }

    def add(self, kind: str, *rows: Any) -> None:
        """Add results of one kind, and write the file."""
        self.content[kind] += rows
        self.keep()

    def keep(self) -> None:
        """Write the file."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps(self.content, indent=1) + "\n")
