"""What a log of Delta Lake says, line by line, as its protocol has it (PROTOCOL.md of delta-io/delta).

A commit is a file of lines, each an object with one field, which says what kind of line it is: a file that the table has
got (`add`) or has no more (`remove`), its columns (`metaData`), who may read and write it (`protocol`), and whatever a
writer has to say (`commitInfo`). The state at a version is the last line of each kind, and of each file.
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
"""The lines that hold, by the path of their file, or by their kind."""
PROTOCOL: Final[Line] = {
    "protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["kontrollerGenerations"]}
}
"""Everybody can read it. Nobody else can write to it, as no other writer knows of this feature: OPTIMIZE and VACUUM of
somebody else would remove files that generations name."""
_TYPES: Final = {"of": "string", "day": "date"}
"""Of the columns that divide a table into folders, and are in no file."""
_MAY_BE_NULL: Final = {"nullable": True, "metadata": {}}
_NONE: Final = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Info:
    """What a commit says of itself."""

    at_ms: int
    id: str
    created_ms: int
    """When the table was, with its first commit."""
    parts: str
    """The fingerprint of its parts."""
    columns: str
    """That of its columns."""

    def line(self, generation: int) -> Line:
        """`DESCRIBE HISTORY` shows the generation: versions of several tables that belong together have the same."""
        said = {"timestamp": self.at_ms, "operation": "WRITE", "operationParameters": {}, "engineInfo": "kontroller"}
        return {"commitInfo": {**said, "userMetadata": f"generation {generation}", "kontroller": asdict(self)}}


def info_of(commit: str) -> Info | None:
    """None for a commit of somebody else."""
    try:
        return Info(**json.loads(commit.partition("\n")[0])["commitInfo"]["kontroller"])
    except (ValueError, LookupError, TypeError):
        return None


def fingerprint(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:32]


def divided_by(table: Table, files: Sequence[File]) -> list[str]:
    """The columns whose values name the folders that a table's files are in; of one that has no file yet, those that it
    will be divided by, as far as that is known."""
    if files:
        return list(_values(files[0]))
    return list(_TYPES) if table.by_day else []


def columns_of(table: Table, divided: Sequence[str]) -> str:
    """A table's columns, and then those that divide it, as Delta and Spark write them."""
    schema = json.loads(table.schema.json())
    schema["fields"] += [{"name": name, "type": _TYPES[name], **_MAY_BE_NULL} for name in divided]
    return json.dumps(schema)


def described(table: Table, divided: Sequence[str], info: Info) -> Line:
    """What a table is."""
    said = {"id": info.id, "name": table.name, "createdTime": info.created_ms, "configuration": {}}
    columns = {"schemaString": columns_of(table, divided), "partitionColumns": list(divided)}
    return {"metaData": {**said, "format": {"provider": "parquet", "options": {}}, **columns}}


def added(file: File) -> Line:
    said = {"size": file.size_bytes, "modificationTime": file.changed_ms, "dataChange": True}
    return {"add": {"path": _address(file), "partitionValues": _values(file), **said}}


def removed(file: File, at_ms: int) -> Line:
    said = {"deletionTimestamp": at_ms, "dataChange": True, "extendedFileMetadata": True}
    return {"remove": {"path": _address(file), "partitionValues": _values(file), "size": file.size_bytes, **said}}


def text_of(lines: Iterable[Line]) -> str:
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def lines_of(commit: str) -> list[Line]:
    return [json.loads(line) for line in commit.splitlines()]


def state_after(state: State, lines: Iterable[Line]) -> State:
    """The state at a version, from that of a version before and all lines since."""
    after = dict(state)
    for line in lines:
        ((kind, said),) = line.items()
        if kind in ("add", "remove"):
            after[said["path"]] = line
        elif kind in ("metaData", "protocol"):
            after[kind] = line
    return after


def ended(state: State, before_ms: int, used: Iterable[Part]) -> State:
    """Of files that were removed before a moment, and are in no part that is still used."""
    still = set(used)
    gone = {path: line for path, line in state.items() if "remove" in line}
    return {
        path: line
        for path, line in gone.items()
        if line["remove"]["deletionTimestamp"] < before_ms and still.isdisjoint(_folders(path))
    }


def folders_of(gone: State, state: State) -> list[str]:
    """What is to be removed with these files of a state: whole writes where it has no other file of them, else the folders
    of a cluster and day."""
    depth = len(state["metaData"]["metaData"]["partitionColumns"])
    others = {_folders(path)[0] for path in state if path not in gone and "/" in path}
    folders = (_folders(path) for path in gone)
    return sorted({each[depth if each[0] in others else 0] for each in folders})


def _folders(path: str) -> list[str]:
    """The folders that a file is in, from that of its write on."""
    names = unquote(path).split("/")[:-1]
    return ["/".join(names[: 1 + number]) for number in range(len(names))]


def _address(file: File) -> str:
    return quote(file.name, safe="/=-_.~")


def _values(file: File) -> dict[str, str | None]:
    """Of the columns that divide a table; their texts are what folders are named after."""
    pairs = (folder.partition("=")[::2] for folder in file.name.split("/"))
    return {name: None if value == _NONE else unquote(value) for name, value in pairs if name in _TYPES}
