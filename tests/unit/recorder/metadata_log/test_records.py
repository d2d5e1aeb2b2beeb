"""Reading the bytes of a metadata log: batches as they arrive, records by their schemas, and no guesses."""

import gzip
from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.model.ids import BrokerId, PartitionId, TopicId, TopicName
from controller_core.recorder.metadata_log import records
from controller_core.recorder.metadata_log.batches import BatchReader, LogBatch, LogUnreadable
from controller_core.recorder.metadata_log.events import EventReader
from controller_core.recorder.metadata_log.image import MetadataImage
from controller_core.recorder.metadata_log.records import UnknownKind, read_control, read_record
from tests.unit.recorder.metadata_log import logs


def read_all(*pieces: bytes) -> list[LogBatch]:
    reader = BatchReader()
    return [batch for piece in pieces for batch in reader.read(piece)]


def test_batches_are_read_however_the_bytes_are_cut() -> None:
    whole = logs.leader_change(0, 101, epoch=3) + logs.batch(1, logs.topic(), logs.NO_OP, epoch=3, time_ms=5)
    expected = read_all(whole)
    assert [(batch.base_offset, batch.last_offset, batch.epoch) for batch in expected] == [(0, 0, 3), (1, 2, 3)]
    assert [batch.is_control for batch in expected] == [True, False]
    assert expected[1].time_ms == 5
    for cut in range(len(whole)):
        assert read_all(whole[:cut], whole[cut:]) == expected
    assert read_all(whole[:-1]) == expected[:1], "the part of a batch at the end is waited for"


def test_a_hurt_batch_is_refused() -> None:
    whole = logs.batch(0, logs.topic())
    for hurt in (whole[:-1] + b"?", whole[:16] + b"\1" + whole[17:], whole[:8] + b"\0\0\0\1" + whole[12:]):
        with pytest.raises(LogUnreadable):
            read_all(hurt)


def test_compressed_batches_are_refused_unless_python_can_read_them() -> None:
    [plain] = read_all(logs.batch(0, logs.topic()))
    assert plain.records[0].value == logs.topic()
    with pytest.raises(LogUnreadable, match="compressed in a way"):
        read_all(logs.batch(0, logs.topic(), attributes=4))
    with pytest.raises(LogUnreadable, match="does not decompress"):
        read_all(logs.batch(0, gzip.compress(b""), attributes=1))


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_a_registration_is_read_in_each_version(version: int) -> None:
    found = read_record(logs.register(1, 42, rack="a", version=version))
    assert isinstance(found, records.RegisterBroker)
    assert (found.broker, found.epoch, found.rack, found.is_fenced) == (1, 42, "a", True)
    [endpoint] = found.endpoints
    assert (endpoint.listener, endpoint.security_protocol, endpoint.host, endpoint.port) == (
        "PLAINTEXT", "PLAINTEXT", "kafka-1", 9092,
    )  # fmt: skip
    assert found.features["metadata.version"].max_version == 29


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_a_change_of_a_registration_is_read_in_each_version(version: int) -> None:
    found = read_record(logs.registration_change(1, fenced=-1, version=version))
    assert found == records.BrokerChange(broker=BrokerId(1), is_fenced=False)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_partition_is_read_in_each_version(version: int) -> None:
    found = read_record(logs.partition(3, [1, 2], version=version))
    assert isinstance(found, records.Partition)
    assert (found.partition, found.replicas, found.isr, found.leader) == (3, (1, 2), (1, 2), 1)


def test_a_change_says_only_what_it_says_and_tags_of_later_releases_are_passed_over() -> None:
    assert read_record(logs.partition_change(0, leader=-1)) == records.PartitionChange(
        topic_id=TopicId(logs.ORDERS), partition=PartitionId(0), leader=BrokerId(-1)
    )
    assert read_record(logs.partition_change(0, isr=[2], recovery_state=1)) == records.PartitionChange(
        topic_id=TopicId(logs.ORDERS), partition=PartitionId(0), isr=(BrokerId(2),), recovery_state=1
    )


def test_kinds_that_no_journal_needs_say_nothing_and_unknown_ones_are_told() -> None:
    assert read_record(logs.NO_OP) is None
    with pytest.raises(UnknownKind):
        read_record(logs.UNKNOWN)


def test_a_version_that_is_not_known_is_not_guessed() -> None:
    for content in (
        logs.frame(3, 3),
        logs.frame(5, 9),
        logs.register(1, 42, version=5),
        b"\x02\x14\x00\x00",
        logs.topic() + b"?",
        logs.topic()[:-3],
        b"",
    ):
        with pytest.raises(LogUnreadable):
            read_record(content)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_record_or_refused(content: bytes) -> None:
    with suppress(LogUnreadable, UnknownKind):
        read_record(content)


@given(st.sampled_from([0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 17, 23]), st.integers(0, 4), st.binary(max_size=120))
def test_any_fields_of_known_kinds_are_read_applied_or_refused(api_key: int, version: int, fields: bytes) -> None:
    image = MetadataImage()
    for known in (logs.register(1, 1), logs.topic(), logs.partition(0, [1])):
        image.apply(apply(known))
    with suppress(LogUnreadable):
        record = read_record(logs.frame(api_key, version, fields))
        if record is not None and not isinstance(record, records.Transaction):
            image.apply(record)
            image.copy()


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_any_control_record_is_read_or_refused(key: bytes, value: bytes) -> None:
    with suppress(LogUnreadable):
        read_control(key, value)


@given(st.binary(max_size=300), st.integers(0, 300))
def test_any_bytes_in_a_log_are_refused_or_waited_for(content: bytes, cut: int) -> None:
    whole = logs.batch(0, logs.topic(), logs.partition(0, [1, 2]))
    with suppress(LogUnreadable):
        for batch in read_all(whole[:cut] + content, whole[cut:]):
            EventReader().read(batch)


def apply(content: bytes) -> records.MetadataRecord:
    record = read_record(content)
    assert record is not None
    return record


def test_ids_are_read_as_they_are() -> None:
    found = read_record(logs.topic("other", UUID("33c6642e-5761-426d-a063-76118bc197a5")))
    assert found == records.Topic(
        name=TopicName("other"), topic_id=TopicId(UUID("33c6642e-5761-426d-a063-76118bc197a5"))
    )
