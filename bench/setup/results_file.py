"""What a measurement has found so far, in a file that is written anew with each finding: a run that ends early keeps it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.setup.machine import machine


class ResultsFile:
    """Findings of several kinds, each a list, beside when it began, on which machine and with which settings."""

    def __init__(self, file: Path, settings: dict[str, Any], *kinds: str) -> None:
        self.file = file
        self.content: dict[str, Any] = {
            "began": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "settings": settings,
            **{kind: [] for kind in kinds},
        }

    def add(self, kind: str, *rows: Any) -> None:
        """Takes findings of one kind, and writes the file."""
        self.content[kind] += rows
        self.keep()

    def keep(self) -> None:
        """Writes the file."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps(self.content, indent=1) + "\n")
