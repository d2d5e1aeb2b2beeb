"""Snapshots in files: nothing is lost on the way, and no file that is damaged, foreign, newer or mixed is read."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.client.loads.arrays import make_load_snapshot
from controller_core.client.loads.cluster_loads import BrokerLoad, ClusterLoads, PartitionLoad
from controller_core.model.ids import BrokerId, TopicPartition
from controller_planner.loads import LoadSnapshot
from kontroller.planning.snapshot_file import (
    SCHEMA,
    StoredLoads,
    UnusableSnapshotFileError,
    read_snapshot,
    write_snapshot,
)
from simulation.cluster.names import tp
from tests.unit.planning.snapshots import make_loads, make_partition, make_snapshot

HEAD = b"kontroller.loads"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "loads.parquet"


def write(path: Path, snapshot: LoadSnapshot | None = None) -> LoadSnapshot:
    found = make_snapshot() if snapshot is None else snapshot
    write_snapshot(path, StoredLoads(snapshot=found, troubles=("broker 3: it does not answer",)))
    return found


def rewrite(path: Path, change: Callable[[Any], Any], head: dict[str, object] | None = None) -> None:
    """Change the table of a file, and its metadata."""
    table = pq.read_table(path)
    kept = json.loads(table.schema.metadata[HEAD])
    pq.write_table(change(table).replace_schema_metadata({HEAD: json.dumps(kept | (head or {}))}), path)


def put(name: str, row: int, value: object) -> Callable[[Any], Any]:
    """Return a change of one value."""

    def change(table: Any) -> Any:
        values = table[name].to_pylist()
        values[row] = value
        at = table.schema.get_field_index(name)
        return table.set_column(at, SCHEMA.field(name), pa.array(values, SCHEMA.field(name).type))

    return change


def test_a_snapshot_is_read_as_it_was_written(path: Path) -> None:
    written = write(path)
    found = read_snapshot(path)
    assert found.snapshot.compute_hash() == written.compute_hash()
    assert found.troubles == ("broker 3: it does not answer",)


def test_unknown_numbers_absent_leaders_and_brokers_without_rack_are_read_as_such(path: Path) -> None:
    lost = replace(make_partition(1, 2, size=None, rate=None), leader=None, isr=())
    written = write(path, make_snapshot({tp("orders", 0): lost, tp("orders", 1): make_partition(2)}, {1: None, 2: "b"}))
    found = read_snapshot(path).snapshot
    assert found.compute_hash() == written.compute_hash()
    assert found.brokers.racks == (None, "b")
    assert np.isnan(found.partitions.size_bytes).tolist() == [True, False]
    assert found.partitions.leader.tolist() == [-1, 1]


def test_a_cluster_without_topics_has_a_file(path: Path) -> None:
    empty = write(path, make_load_snapshot(replace(make_loads(), partitions={})))
    assert read_snapshot(path).snapshot.compute_hash() == empty.compute_hash()


@given(st.data())
def test_any_snapshot_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    ids = data.draw(st.lists(st.integers(0, 2**31 - 1).map(BrokerId), min_size=1, max_size=5, unique=True))
    numbers = st.none() | st.floats(0, 1e15)
    partitions = data.draw(
        st.dictionaries(
            st.builds(tp, st.sampled_from(["a", "b.c", "_d"]), st.integers(0, 9)),
            st.builds(
                PartitionLoad,
                replicas=st.lists(st.sampled_from(ids), min_size=1, unique=True).map(tuple),
                isr=st.lists(st.sampled_from(ids), unique=True).map(tuple),
                leader=st.none() | st.sampled_from(ids),
                size_bytes=st.none() | st.integers(0, 2**50),
                in_bytes_per_second=numbers,
                min_isr=st.none() | st.integers(1, 5),
            ),
            max_size=8,
        )
    )
    brokers = tuple(
        BrokerLoad(id=each, rack=data.draw(st.sampled_from([None, "a", "b"])), is_live=data.draw(st.booleans()))
        for each in ids
    )
    loads = ClusterLoads(cluster_id=None, taken_at_s=1.5, brokers=brokers, partitions=partitions)
    path = tmp_path_factory.mktemp("loads") / "any.parquet"
    assert write(path, make_load_snapshot(loads)).compute_hash() == read_snapshot(path).snapshot.compute_hash()


def test_a_file_that_cannot_be_written_leaves_the_old_one_and_nothing_else(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = write(path)

    def fail(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises(OSError, match="no space left"):
        write(path, make_snapshot(racks={1: "a", 2: "b", 3: "c"}))
    monkeypatch.undo()
    assert read_snapshot(path).snapshot.compute_hash() == written.compute_hash()
    assert [each.name for each in path.parent.iterdir()] == ["loads.parquet"]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"topic,partition\norders,0\n", bytes(4096)])
def test_a_file_of_another_format_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(UnusableSnapshotFileError, match="is no Parquet file, or is cut off or damaged"):
        read_snapshot(path)


@pytest.mark.parametrize("kept", [0.3, 0.9, 0.99])
def test_a_file_that_is_cut_off_is_refused(path: Path, kept: float) -> None:
    write(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept)])
    with pytest.raises(UnusableSnapshotFileError, match="cut off"):
        read_snapshot(path)


def test_no_file_is_refused(path: Path) -> None:
    with pytest.raises(UnusableSnapshotFileError, match="cannot be read"):
        read_snapshot(path)


def test_a_foreign_table_is_refused(path: Path) -> None:
    pq.write_table(pa.table({"topic": ["orders"]}), path)
    with pytest.raises(
        UnusableSnapshotFileError, match="is no snapshot of loads: write one with `kontroller snapshot`"
    ):
        read_snapshot(path)


def test_a_newer_schema_is_refused(path: Path) -> None:
    write(path)
    rewrite(path, lambda table: table, {"version": 2})
    with pytest.raises(
        UnusableSnapshotFileError, match="has version 2 of the schema, and this kontroller reads version 1"
    ):
        read_snapshot(path)


def test_the_rows_of_two_snapshots_are_refused(path: Path) -> None:
    write(path)
    later = path.with_name("later.parquet")
    write(later, make_load_snapshot(replace(make_loads(), taken_at_s=1_700_000_060.0)))
    rewrite(
        path,
        lambda table: pa.concat_tables([table, pq.read_table(later).replace_schema_metadata(table.schema.metadata)]),
    )
    with pytest.raises(
        UnusableSnapshotFileError,
        match=r"it has rows of 2 snapshots \('prod' at 1700000000000 ms, 'prod' at 1700000060000 ms\): give the rows",
    ):
        read_snapshot(path)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (put("size_bytes", 5, float("nan")), "column size_bytes has NaN: leave unknown numbers empty"),
        (put("size_bytes", 5, -1.0), "orders-1: size_bytes is -1"),
        (put("size_bytes", 5, 7.0), "another program has changed it"),
        (put("size_bytes", 5, 1e300), r"orders-1: size_bytes is 1e\+300; give a number from 0 to 1e\+27, or nothing"),
        (put("replicas", 4, [1, 99]), "orders-0: broker 99 is in replicas and has no row of its own; a broker that is"),
        (put("replicas", 4, [1, -1]), "orders-0: broker -1 is in replicas and has no row"),
        (put("isr", 4, [1, 99]), "orders-0: broker 99 is in isr and has no row"),
        (put("leader", 4, 99), "orders-0: the leader 99 has no row of its own"),
        (put("replicas", 4, [1, 1]), "two replicas on one broker|twice"),
        (put("replicas", 4, []), "orders-0 has no replicas"),
        (put("replicas", 4, None), "1 rows of kind partition have no replicas"),
        (put("isr", 4, [4]), "orders-0: isr has a broker that is none of the replicas, or one twice"),
        (put("leader", 4, 4), "the leader is none of its replicas"),
        (put("topic", 4, None), "1 rows of kind partition have no topic"),
        (put("partition", 4, 1), "orders-1 is listed twice"),
        (put("kind", 4, "consumer"), "rows of the kinds broker, consumer, partition"),
        (put("broker", 0, 2), "broker 2 is listed twice"),
        (put("capacity_disk_bytes", 0, 0.0), "capacity_disk_bytes is 0"),
        (lambda table: table.slice(0, 7), "another program has changed it"),
        (lambda table: table.slice(0, 0), "it has no rows"),
        (lambda table: table.drop_columns(["isr"]), "has no column isr"),
        (
            lambda table: table.set_column(1, "taken_at_ms", pa.array(["now"] * len(table))),
            "column taken_at_ms has the type string, not int64",
        ),
    ],
)
def test_a_table_that_is_no_snapshot_is_refused_with_the_reason(
    path: Path, change: Callable[[Any], Any], why: str
) -> None:
    write(path)
    rewrite(path, change)
    with pytest.raises(UnusableSnapshotFileError, match=why):
        read_snapshot(path)


@pytest.mark.parametrize("taken_at_ms", [2**63 - 1, -1])
def test_a_time_out_of_range_is_refused(path: Path, taken_at_ms: int) -> None:
    write(path)
    rewrite(path, lambda table: table.set_column(1, SCHEMA.field("taken_at_ms"), pa.array([taken_at_ms] * len(table))))
    with pytest.raises(UnusableSnapshotFileError, match=f"taken_at_ms is {taken_at_ms}, which is in none of the years"):
        read_snapshot(path)


@pytest.mark.parametrize("troubles", [5, None, "text", {"a": 1}])
def test_a_head_with_other_types_is_refused(path: Path, troubles: object) -> None:
    write(path)
    rewrite(path, lambda table: table, {"troubles": troubles})
    with pytest.raises(UnusableSnapshotFileError, match="is no snapshot of loads: write one with"):
        read_snapshot(path)


def test_a_text_that_is_not_utf_8_is_refused(path: Path) -> None:
    write(path)

    def change(table: Any) -> Any:
        texts = [value and value.encode().replace(b"or", b"\xff\xfe") for value in table["topic"].to_pylist()]
        at = table.schema.get_field_index("topic")
        return table.set_column(at, "topic", pa.array(texts, pa.binary()).cast(pa.string(), safe=False))

    rewrite(path, change)
    with pytest.raises(UnusableSnapshotFileError, match="has a text that is not UTF-8, so it is damaged"):
        read_snapshot(path)


def test_a_replica_without_a_name_is_refused(path: Path) -> None:
    write(path)
    names = SCHEMA.field("replicas").type

    def change(table: Any) -> Any:
        assert table.schema.field("replicas").type == names
        values = [None if value is None else [*value[:-1], None] for value in table["replicas"].to_pylist()]
        at = table.schema.get_field_index("replicas")
        return table.set_column(at, "replicas", pa.array(values, pa.list_(pa.int32())))

    rewrite(path, change)
    with pytest.raises(UnusableSnapshotFileError, match="a list of brokers has an empty entry"):
        read_snapshot(path)


def test_partitions_of_one_topic_are_ordered_and_keep_their_replicas(path: Path) -> None:
    snapshot = write(path, make_snapshot({TopicPartition(*tp("t", n)): make_partition(n % 4 + 1) for n in range(12)}))
    found = read_snapshot(path).snapshot
    assert found.partitions.number.tolist() == snapshot.partitions.number.tolist() == list(range(12))
