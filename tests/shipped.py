"""The sources of all packages that ship."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).parents[1]
PACKAGES: Final = (
    "controller_core",
    "controller_planner",
    "kontroller",
    "operator/controller_operator",
    "replica_broker",
)


def read_sources() -> Iterator[tuple[str, str]]:
    """Yield the path in the project and the text of each module that ships."""
    for package in PACKAGES:
        for path in (PROJECT / package).rglob("*.py"):
            yield str(path.relative_to(PROJECT)), path.read_text()
