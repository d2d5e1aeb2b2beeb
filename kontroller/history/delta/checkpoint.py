"""A checkpoint of Delta Lake's log: the state at a version in one file, so that readers need not start at the first
commit."""

from io import BytesIO
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from kontroller.history.delta.actions import Line, State

_TEXTS: Final = pa.map_(pa.string(), pa.string())
_FILE: Final = (("path", pa.string()), ("partitionValues", _TEXTS), ("size", pa.int64()), ("dataChange", pa.bool_()))
_SCHEMA: Final = pa.schema(
    {
        "protocol": pa.struct(
            {
                "minReaderVersion": pa.int32(),
                "minWriterVersion": pa.int32(),
                "writerFeatures": pa.list_(pa.string()),
            }
        ),
        "metaData": pa.struct(
            {
                "id": pa.string(),
                "name": pa.string(),
                "format": pa.struct({"provider": pa.string(), "options": _TEXTS}),
                "schemaString": pa.string(),
                "partitionColumns": pa.list_(pa.string()),
                "configuration": _TEXTS,
                "createdTime": pa.int64(),
            }
        ),
        "add": pa.struct([*_FILE, ("modificationTime", pa.int64())]),
        "remove": pa.struct([*_FILE, ("deletionTimestamp", pa.int64()), ("extendedFileMetadata", pa.bool_())]),
    }
)


def encode(state: State) -> bytes:
    """Return the checkpoint file of a state."""
    out = BytesIO()
    pq.write_table(pa.Table.from_pylist([_row(line) for line in state.values()], schema=_SCHEMA), out)
    return out.getvalue()


def read(file: bytes) -> State:
    """Return the state in a checkpoint file."""
    state: State = {}
    for row in pq.read_table(BytesIO(file)).to_pylist(maps_as_pydicts="strict"):
        ((kind, said),) = ((kind, said) for kind, said in row.items() if said is not None)
        state[said.get("path", kind)] = {kind: said}
    return state


def _row(line: Line) -> dict[str, Any]:
    return {kind: {name: _value(name, value) for name, value in said.items()} for kind, said in line.items()}


def _value(name: str, value: Any) -> Any:
    """Convert maps to lists of pairs, which Arrow expects."""
    if name == "format":
        return {**value, "options": list(value["options"].items())}
    return list(value.items()) if isinstance(value, dict) else value
