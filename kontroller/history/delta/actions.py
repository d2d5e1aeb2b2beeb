"""The lines of a Delta Lake log, as its protocol defines them (PROTOCOL.md of delta-io/delta).

A commit is a file of lines. Each is an object with one field, the kind of the line: a file that was added (`add`) or
removed (`remove`), the columns (`metaData`), the requirements for readers and writers (`protocol`), and remarks of the
writer (`commitInfo`). The state at a version is the last line of each kind, and of each file.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

from kontroller.history.generations.folders import File
from kontroller.history.generations.generation import Part
from kontroller.history.schemas import Table

Line = dict[str, dict[str, Any]]
State = dict[str, Line]
"""The lines in force, by the path of their file or by their kind."""
PROTOCOL: Final[Line] = {
    "protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["kontrollerGenerations"]}
}
"""Every program can read the tables. No other program can write them, because none knows this feature: its OPTIMIZE or
VACUUM would remove files that generations name."""
_TYPES: Final = {"of": "string", "day": "date"}
"""The types of the columns that divide a table into folders and are not in the files."""
_MAY_BE_NULL: Final = {"nullable": True, "metadata": {}}
_NONE: Final = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Info:
    """The remarks of a commit about itself."""

    at_ms: int
    id: str
    created_ms: int
    """The creation time of the table, which is that of its first commit."""
    parts: str
    """The fingerprint of the table's parts."""
    columns: str
    """The fingerprint of the table's columns."""

    def line(self, generation: int) -> Line:
        """Return the `commitInfo` line. `DESCRIBE HISTORY` shows the generation, so related versions of several tables
        can be matched."""
        said = {"timestamp": self.at_ms, "operation": "WRITE", "operationParameters": {}, "engineInfo": "kontroller"}
        return {"commitInfo": {**said, "userMetadata": f"generation {generation}", "kontroller": asdict(self)}}


def info_of(commit: str) -> Info | None:
    """Return the remarks of a commit, or None if another program made it."""
    try:
        return Info(**json.loads(commit.partition("\n")[0])["commitInfo"]["kontroller"])
    except (ValueError, LookupError, TypeError):
        return None


def fingerprint(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:32]


def list_partition_columns(table: Table, files: Sequence[File]) -> list[str]:
    """Return the columns whose values name the folders of a table's files.

    Without files, return the columns that will divide it, as far as these are known."""
    if files:
        return list(_values(files[0]))
    return list(_TYPES) if table.by_day else []


def columns_of(table: Table, divided: Sequence[str]) -> str:
    """Return a table's columns, then the dividing columns, in the format of Delta and Spark."""
    schema = json.loads(table.schema.json())
    schema["fields"] += [{"name": name, "type": _TYPES[name], **_MAY_BE_NULL} for name in divided]
    return json.dumps(schema)


def make_metadata(table: Table, divided: Sequence[str], info: Info) -> Line:
    """Return the line that describes a table."""
    said = {"id": info.id, "name": table.name, "createdTime": info.created_ms, "configuration": {}}
    columns = {"schemaString": columns_of(table, divided), "partitionColumns": list(divided)}
    return {"metaData": {**said, "format": {"provider": "parquet", "options": {}}, **columns}}


def make_add(file: File) -> Line:
    said = {"size": file.size_bytes, "modificationTime": file.changed_ms, "dataChange": True}
    return {"add": {"path": _address(file), "partitionValues": _values(file), **said}}


def make_remove(file: File, at_ms: int) -> Line:
    said = {"deletionTimestamp": at_ms, "dataChange": True, "extendedFileMetadata": True}
    return {"remove": {"path": _address(file), "partitionValues": _values(file), "size": file.size_bytes, **said}}


def text_of(lines: Iterable[Line]) -> str:
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def lines_of(commit: str) -> list[Line]:
    return [json.loads(line) for line in commit.splitlines()]


def state_after(state: State, lines: Iterable[Line]) -> State:
    """Return the state at a version, from the state at an earlier version and all lines since."""
    after = dict(state)
    for line in lines:
        ((kind, said),) = line.items()
        if kind in ("add", "remove"):
            after[said["path"]] = line
        elif kind in ("metaData", "protocol"):
            after[kind] = line
    return after


def select_expired(state: State, before_ms: int, used: Iterable[Part]) -> State:
    """Return the files that were removed before a moment and are in no used part."""
    still = set(used)
    gone = {path: line for path, line in state.items() if "remove" in line}
    return {
        path: line
        for path, line in gone.items()
        if line["remove"]["deletionTimestamp"] < before_ms and still.isdisjoint(_folders(path))
    }


def folders_of(gone: State, state: State) -> list[str]:
    """Return the folders to remove with these files: a whole write if it has no other file, otherwise folders of a
    cluster and day."""
    depth = len(state["metaData"]["metaData"]["partitionColumns"])
    others = {_folders(path)[0] for path in state if path not in gone and "/" in path}
    folders = (_folders(path) for path in gone)
    return sorted({each[depth if each[0] in others else 0] for each in folders})


def _folders(path: str) -> list[str]:
    """Return the folders that contain a file, from that of its write on."""
    names = unquote(path).split("/")[:-1]
    return ["/".join(names[: 1 + number]) for number in range(len(names))]


def _address(file: File) -> str:
    return quote(file.name, safe="/=-_.~")


def _values(file: File) -> dict[str, str | None]:
    """Return the values of the columns that divide a table. Folders are named after their texts."""
    pairs = (folder.partition("=")[::2] for folder in file.name.split("/"))
    return {name: None if value == _NONE else unquote(value) for name, value in pairs if name in _TYPES}
