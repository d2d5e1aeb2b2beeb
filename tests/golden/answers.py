"""The answers of Kafka's own controller, kept by release in `tests/golden/<release>/<module>.json`.

A file maps the name of a test to its exchanges: each request that the test sent to the controller, and the answer. It is
never written by hand: `pytest -p tests.golden.recording FILE` records the tests of a file again, from brokers of that
release. `tests/unit/golden` holds our handlers to the records without a server.
"""

import json
from dataclasses import fields, is_dataclass
from datetime import timedelta
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from uuid import UUID

FOLDER: Final = Path(__file__).parent
VOLATILE: Final = frozenset({"broker_epoch"})
"""Fields that hold a transaction id of ZooKeeper, which no other cluster has."""


Recorded = list[dict[str, Any]]
"""The exchanges of one test."""


class Exchanges:
    """The requests of one test to the controller and their answers, in values that are the same for every cluster.

    Topic ids become `topic id 1`, `topic id 2`, in the order in which they appear. The entries of an answer are sorted,
    because Kafka answers in the order of a hash table."""

    def __init__(self) -> None:
        self.made: Recorded = []
        self._topic_ids: dict[UUID, str] = {}

    def add(self, request: Any, answer: Any) -> None:
        """Add one exchange."""
        asked = f"{type(request).__name__} v{int(request.__version__)}"
        self.made.append({asked: self._name_ids(_plain(request)), "answer": self._name_ids(_sort(_plain(answer)))})

    def _name_ids(self, value: Any) -> Any:
        match value:
            case UUID():
                return self._topic_ids.setdefault(value, f"topic id {len(self._topic_ids) + 1}")
            case dict():
                return {name: self._name_ids(each) for name, each in value.items()}
            case list():
                return [self._name_ids(each) for each in value]
        return value


def path_of(release: str, module: ModuleType) -> Path:
    """Return the file with a release's answers to a module of tests."""
    return FOLDER / release / f"{module.__name__.rpartition('.')[2]}.json"


def read(path: Path) -> dict[str, Recorded]:
    """Return the record of each test; empty if nothing was recorded yet."""
    found: dict[str, Recorded] = json.loads(path.read_text()) if path.exists() else {}
    return found


def write(path: Path, tests: dict[str, Recorded]) -> None:
    """Write all records, with a line for each exchange."""
    path.parent.mkdir(exist_ok=True)
    lines = {test: ",\n".join(map(json.dumps, recorded)) for test, recorded in sorted(tests.items())}
    joined = ",\n".join(f"{json.dumps(test)}: [\n{exchanges}\n]" for test, exchanges in lines.items())
    path.write_text(f"{{\n{joined}\n}}\n")


def _plain(value: Any) -> Any:
    """Return a message in the types of JSON, except topic ids, which stay UUIDs."""
    match value:
        case Enum():
            return value.name
        case timedelta():
            return value // timedelta(milliseconds=1)
        case bytes():
            return value.hex()
        case tuple() | list():
            return [_plain(each) for each in value]
    if not is_dataclass(value):
        return value
    names = [field.name for field in fields(value)]
    return {name: "*" if name in VOLATILE else _plain(getattr(value, name)) for name in names}


def _sort(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sort(each) for name, each in value.items()}
    if isinstance(value, list):
        return sorted(map(_sort, value), key=lambda each: json.dumps(each, default=lambda _: ""))
    return value
