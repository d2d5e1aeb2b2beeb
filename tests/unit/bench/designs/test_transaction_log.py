"""The reader of ZooKeeper's transaction log reads it while the server writes it."""

from pathlib import Path

import pytest

from bench.designs.counting.transaction_log import Operation, Transaction, TransactionLog, decode_transaction
from tests.unit.bench.designs.entries import (
    CHECK,
    CLOSE,
    CREATE,
    DELETE,
    MULTI,
    OPEN,
    REFUSED,
    SESSION,
    SET_DATA,
    add_frame,
    buffer,
    encode_change,
    encode_close,
    encode_create,
    entry,
    several,
    write_log,
)


@pytest.mark.parametrize(
    ("content", "operations"),
    [
        (entry(CREATE, encode_create("/v2/a", b"x")), [Operation(change="create", path="/v2/a", data=b"x")]),
        (entry(SET_DATA, encode_change("/v2/a", b"y")), [Operation(change="set data", path="/v2/a", data=b"y")]),
        (entry(DELETE, buffer(b"/v2/a")), [Operation(change="delete", path="/v2/a")]),
        (
            entry(MULTI, several((CHECK, encode_change("/v2/e", b"")[:9]), (CREATE, encode_create("/v2/b")))),
            [Operation(change="check", path="/v2/e"), Operation(change="create", path="/v2/b")],
        ),
    ],
)
def test_a_transaction_has_its_operations(content: bytes, operations: list[Operation]) -> None:
    assert decode_transaction(content) == Transaction(session=SESSION, time_ms=1_000, operations=tuple(operations))


@pytest.mark.parametrize("content", [several((REFUSED, bytes(4)), (REFUSED, bytes(4))), bytes(4)])
def test_one_that_was_refused_changed_nothing(content: bytes) -> None:
    refused = decode_transaction(entry(MULTI if len(content) > 4 else REFUSED, content))
    assert (refused.is_refused, refused.operations) == (True, ())


def test_with_a_session_its_ephemeral_znodes_go() -> None:
    ended = decode_transaction(entry(CLOSE, encode_close("/v2/brokers/ids/1", "/v2/x")))
    assert [(each.change, each.path) for each in ended.operations] == [
        ("delete", "/v2/brokers/ids/1"),
        ("delete", "/v2/x"),
    ]
    assert ended.is_of_sessions
    assert decode_transaction(entry(OPEN, bytes(4))).is_of_sessions


def test_each_look_reads_what_is_new_and_leaves_what_is_being_written(tmp_path: Path) -> None:
    one, other = entry(CREATE, encode_create("/a")), entry(DELETE, buffer(b"/a"), time_ms=2_000)
    log = TransactionLog(write_log(tmp_path))
    assert list(log.read()) == []
    write_log(tmp_path, one)
    file = tmp_path / "version-2" / "log.1"
    begun = file.read_bytes().rstrip(b"\0") + add_frame(other)[:-3]
    file.write_bytes(begun + bytes(50))
    assert [each.time_ms for each in log.read()] == [1_000]
    write_log(tmp_path, one, other)
    assert [each.time_ms for each in log.read()] == [2_000]
    assert list(log.read()) == []


def test_a_log_in_several_files_is_refused(tmp_path: Path) -> None:
    write_log(tmp_path)
    with pytest.raises(ValueError, match="no snapshots"):
        list(TransactionLog(write_log(tmp_path, name="log.2")).read())


def test_before_its_first_transaction_a_server_has_no_log(tmp_path: Path) -> None:
    assert list(TransactionLog(tmp_path).read()) == []
