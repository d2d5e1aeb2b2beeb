"""A snapshot of loads in a Parquet file: one row for each broker and each partition (docs/plans.md has the columns).

Unknown numbers are null. Each row names its cluster and time, so that rows of several snapshots are told apart. The
file's own metadata has the version of the schema and the hash of the snapshot."""

import json
import os
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from controller_core.model.wording import list_some
from controller_planner.loads import NO_BROKER, Brokers, InvalidSnapshot, LoadSnapshot, Partitions

VERSION: Final = 1
_KEY: Final = b"kontroller.loads"
_MOST_ROWS: Final = 20_000_000
_BROKER, _PARTITION = "broker", "partition"
_IDS: Final = pa.list_(pa.field("element", pa.int32(), nullable=False))
SCHEMA: Final = pa.schema(
    [
        pa.field("cluster_id", pa.string(), nullable=False),
        pa.field("taken_at_ms", pa.int64(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("broker", pa.int32()),
        pa.field("rack", pa.string()),
        pa.field("is_live", pa.bool_()),
        pa.field("takes_replicas", pa.bool_()),
        pa.field("capacity_disk_bytes", pa.float64()),
        pa.field("capacity_in_bytes_per_second", pa.float64()),
        pa.field("capacity_out_bytes_per_second", pa.float64()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("replicas", _IDS),
        pa.field("isr", _IDS),
        pa.field("leader", pa.int32()),
        pa.field("size_bytes", pa.float64()),
        pa.field("in_bytes_per_second", pa.float64()),
        pa.field("out_bytes_per_second", pa.float64()),
        pa.field("min_isr", pa.int32()),
    ]
)
_CAPACITIES: Final = ("capacity_disk_bytes", "capacity_in_bytes_per_second", "capacity_out_bytes_per_second")
_LOADS: Final = ("size_bytes", "in_bytes_per_second", "out_bytes_per_second")
_NEVER_NULL: Final = {
    _BROKER: ("broker", "is_live", "takes_replicas"),
    _PARTITION: ("topic", "partition", "replicas", "isr", "min_isr"),
}


class UnusableSnapshotFileError(Exception):
    """A file that is not a snapshot of loads, or not a whole one. The message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLoads:
    """A snapshot, and everything that was unknown when it was taken."""

    snapshot: LoadSnapshot
    troubles: tuple[str, ...] = ()
    """Lines about brokers and answers that were missing."""


def write_snapshot(path: Path, loads: StoredLoads) -> None:
    """Write the file, or replace it, atomically. Raises `OSError`."""
    snapshot = loads.snapshot
    head = {"version": VERSION, "hash": snapshot.compute_hash(), "troubles": loads.troubles}
    table = pa.concat_tables([_make_brokers(snapshot), _make_partitions(snapshot)])
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with new.open("wb") as file:
            pq.write_table(table.replace_schema_metadata({_KEY: json.dumps(head)}), file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        # The rename is atomic, and the data is on the disk by now, so a crash leaves the old file or the new one.
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def read_snapshot(path: Path) -> StoredLoads:
    """Return the snapshot in a file. Raises `UnusableSnapshotFileError`."""
    try:
        with pq.ParquetFile(path) as file:
            head = _read_head(path, file)
            if file.metadata.num_rows > _MOST_ROWS:
                raise UnusableSnapshotFileError(f"{path} has {file.metadata.num_rows} rows, more than {_MOST_ROWS}")
            _check_columns(path, file.schema_arrow)
            table = file.read(columns=SCHEMA.names)
    except OSError as error:  # pyarrow reports damaged pages as OSError, too
        raise UnusableSnapshotFileError(f"{path} cannot be read: {error}") from error
    except pa.ArrowException as error:
        raise UnusableSnapshotFileError(
            f"{path} is no Parquet file, or is cut off or damaged: write it with `kontroller snapshot` ({error})"
        ) from error
    try:
        snapshot = _read_table(table)
    except InvalidSnapshot as error:
        raise UnusableSnapshotFileError(f"{path}: {error}") from error
    except UnicodeDecodeError as error:  # pyarrow decodes a text when it is used
        raise UnusableSnapshotFileError(
            f"{path} has a text that is not UTF-8, so it is damaged: take the snapshot again ({error})"
        ) from error
    if snapshot.compute_hash() != head["hash"]:
        raise UnusableSnapshotFileError(
            f"{path} does not have the content that its hash was made of: another program has changed it. Take the "
            "snapshot again"
        )
    return StoredLoads(snapshot=snapshot, troubles=tuple(map(str, head["troubles"])))


def _make_brokers(snapshot: LoadSnapshot) -> Any:
    brokers = snapshot.brokers
    columns: dict[str, Any] = {
        "broker": pa.array(brokers.ids),
        "rack": pa.array(brokers.racks, pa.string()),
        "is_live": pa.array(brokers.is_live),
        "takes_replicas": pa.array(brokers.takes_replicas),
    }
    columns |= {name: _make_numbers(getattr(brokers, name)) for name in _CAPACITIES}
    return _make_table(snapshot, _BROKER, len(brokers), columns)


def _make_partitions(snapshot: LoadSnapshot) -> Any:
    partitions, ids = snapshot.partitions, snapshot.brokers.ids
    names = pa.array(partitions.topics, pa.string())
    columns: dict[str, Any] = {
        "topic": names.take(pa.array(partitions.topic)),
        "partition": pa.array(partitions.number),
        "replicas": _make_lists(partitions.replicas, partitions.replicas >= 0, ids),
        "isr": _make_lists(partitions.replicas, partitions.in_sync, ids),
        "leader": pa.array(np.append(ids, NO_BROKER)[partitions.leader], mask=partitions.leader == NO_BROKER),
        "min_isr": pa.array(partitions.min_isr),
    }
    columns |= {name: _make_numbers(getattr(partitions, name)) for name in _LOADS}
    return _make_table(snapshot, _PARTITION, len(partitions), columns)


def _make_table(snapshot: LoadSnapshot, kind: str, rows: int, columns: dict[str, Any]) -> Any:
    columns["cluster_id"] = pa.repeat(pa.scalar(snapshot.cluster_id), rows)
    columns["taken_at_ms"] = pa.repeat(pa.scalar(snapshot.taken_at_ms, pa.int64()), rows)
    columns["kind"] = pa.repeat(pa.scalar(kind), rows)
    arrays = [
        columns[field.name].cast(field.type) if field.name in columns else pa.nulls(rows, field.type)
        for field in SCHEMA
    ]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def _make_numbers(values: NDArray[Any]) -> Any:
    return pa.array(values, mask=np.isnan(values))


def _make_lists(replicas: NDArray[Any], chosen: NDArray[Any], ids: NDArray[Any]) -> Any:
    ends = np.concatenate(([0], chosen.sum(axis=1).cumsum())).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(ids[replicas[chosen]], pa.int32()))


def _read_head(path: Path, file: Any) -> dict[str, Any]:
    written = (file.schema_arrow.metadata or {}).get(_KEY)
    try:
        head = json.loads(written) if written is not None else None
    except ValueError:
        head = None
    wanted = {"version": int, "hash": str, "troubles": list}
    if not isinstance(head, dict) or any(not isinstance(head.get(name), kind) for name, kind in wanted.items()):
        raise UnusableSnapshotFileError(f"{path} is no snapshot of loads: write one with `kontroller snapshot`")
    if head["version"] != VERSION:
        raise UnusableSnapshotFileError(
            f"{path} has version {head['version']} of the schema, and this kontroller reads version {VERSION}: use a "
            "newer kontroller, or take the snapshot again"
        )
    return head


def _check_columns(path: Path, schema: Any) -> None:
    for field in SCHEMA:
        if field.name not in schema.names:
            raise UnusableSnapshotFileError(f"{path} has no column {field.name}")
        found = schema.field(field.name).type
        if found != field.type and not (pa.types.is_list(found) and found.value_type == pa.int32()):
            raise UnusableSnapshotFileError(f"{path}: column {field.name} has the type {found}, not {field.type}")


def _read_table(table: Any) -> LoadSnapshot:
    """Return the snapshot in the rows. Raises `InvalidSnapshot`."""
    taken = table.select(["cluster_id", "taken_at_ms"]).group_by(["cluster_id", "taken_at_ms"]).aggregate([])
    if taken.num_rows != 1:
        named = list_some(f"{each['cluster_id']!r} at {each['taken_at_ms']} ms" for each in taken.to_pylist())
        raise InvalidSnapshot(
            f"it has rows of {taken.num_rows} snapshots ({named}): give the rows of one" if named else "it has no rows"
        )
    parts = {kind: table.filter(pc.equal(table["kind"], kind)).combine_chunks() for kind in (_BROKER, _PARTITION)}
    if sum(part.num_rows for part in parts.values()) != table.num_rows:
        known = list_some(sorted(set(pc.unique(table["kind"]).to_pylist())))
        raise InvalidSnapshot(f"it has rows of the kinds {known}, and only {_BROKER} and {_PARTITION} are known")
    for kind, names in _NEVER_NULL.items():
        for name in names:
            if parts[kind][name].null_count:
                raise InvalidSnapshot(f"{parts[kind][name].null_count} rows of kind {kind} have no {name}")
    brokers = _read_brokers(parts[_BROKER])
    return LoadSnapshot(
        cluster_id=taken["cluster_id"][0].as_py(),
        taken_at_ms=taken["taken_at_ms"][0].as_py(),
        brokers=brokers,
        partitions=_read_partitions(parts[_PARTITION], brokers.ids),
    )


def _read_brokers(table: Any) -> Brokers:
    return Brokers(
        ids=table["broker"].to_numpy(),
        racks=tuple(table["rack"].to_pylist()),
        takes_replicas=_read_flags(table["takes_replicas"]),
        is_live=_read_flags(table["is_live"]),
        capacity_disk_bytes=_read_numbers(table, "capacity_disk_bytes"),
        capacity_in_bytes_per_second=_read_numbers(table, "capacity_in_bytes_per_second"),
        capacity_out_bytes_per_second=_read_numbers(table, "capacity_out_bytes_per_second"),
    )


def _read_partitions(table: Any, ids: NDArray[np.int32]) -> Partitions:
    topics = pc.dictionary_encode(table["topic"]).combine_chunks()
    replicas = _read_lists(table, "replicas", ids)
    in_sync = _read_lists(table, "isr", ids)
    is_member = np.zeros(replicas.shape, dtype=np.bool_)
    for column in range(in_sync.shape[1]):
        is_member |= (replicas == in_sync[:, column, None]) & (replicas >= 0)
    has_replicas = (replicas >= 0).any(axis=1)
    if (wrong := has_replicas & (is_member.sum(axis=1) != (in_sync >= 0).sum(axis=1))).any():
        raise InvalidSnapshot(f"{_name(table, wrong)}: isr has a broker that is none of the replicas, or one twice")
    leaders = table["leader"].fill_null(NO_BROKER).to_numpy()
    found = _find_indexes(leaders, ids)
    if (wrong := (found == NO_BROKER) & (leaders != NO_BROKER)).any():
        raise InvalidSnapshot(f"{_name(table, wrong)}: the leader {leaders[wrong][0]} has no row of its own")
    return Partitions(
        topics=tuple(topics.dictionary.to_pylist()),
        topic=topics.indices.to_numpy(),
        number=table["partition"].to_numpy(),
        replicas=replicas,
        leader=found,
        size_bytes=_read_numbers(table, "size_bytes"),
        in_bytes_per_second=_read_numbers(table, "in_bytes_per_second"),
        out_bytes_per_second=_read_numbers(table, "out_bytes_per_second"),
        min_isr=table["min_isr"].to_numpy(),
        in_sync=is_member,
    )


def _read_flags(column: Any) -> NDArray[np.bool_]:
    return np.array(column.to_pylist(), dtype=np.bool_)


def _read_numbers(table: Any, name: str) -> NDArray[np.float64]:
    column = table[name]
    if pc.any(pc.is_nan(column)).as_py():
        raise InvalidSnapshot(f"column {name} has NaN: leave unknown numbers empty (null)")
    return np.asarray(column.fill_null(float("nan")).to_numpy(), dtype=np.float64)


def _name(table: Any, which: NDArray[np.bool_]) -> str:
    """Name the first partition of some rows, and count the others."""
    at = np.flatnonzero(which)
    more = f" (and {len(at) - 1} more of this kind)" if len(at) > 1 else ""
    first = int(at[0])
    return f"partition {table['topic'][first].as_py()}-{table['partition'][first].as_py()}{more}"


def _read_lists(table: Any, name: str, ids: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return lists of ids as rows of indexes, filled up with `NO_BROKER`."""
    column = table[name]
    lengths = pc.list_value_length(column).to_numpy()
    values = np.array([*chain.from_iterable(part.flatten().to_pylist() for part in column.chunks)], dtype=object)
    if any(value is None for value in values):
        raise InvalidSnapshot("a list of brokers has an empty entry")
    rows = np.full((len(lengths), int(lengths.max(initial=0)) or 1), NO_BROKER, dtype=np.int32)
    is_used = np.arange(rows.shape[1]) < lengths[:, None]
    rows[is_used] = found = _find_indexes(values.astype(np.int64), ids)
    if (unknown := values[found == NO_BROKER]).size:
        which = (is_used & (rows == NO_BROKER)).any(axis=1)
        raise InvalidSnapshot(
            f"{_name(table, which)}: broker {unknown[0]} is in {name} and has no row of its own; a broker that is down "
            "needs one, too"
        )
    return rows


def _find_indexes(wanted: NDArray[Any], ids: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the indexes of brokers by their ids; `NO_BROKER` for ids that no broker has."""
    if not len(ids):
        return np.full(len(wanted), NO_BROKER, dtype=np.int32)
    order = np.argsort(ids, kind="stable")
    places = np.searchsorted(ids[order], wanted).clip(max=len(ids) - 1)
    return np.where(ids[order][places] == wanted, order[places], NO_BROKER).astype(np.int32)
