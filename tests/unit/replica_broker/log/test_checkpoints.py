"""Small files: a written value is read back, and any other content is a value or `MalformedFile`."""

from collections.abc import Callable
from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.model.ids import LeaderEpoch, PartitionId, TopicId, TopicName, TopicPartition
from replica_broker.log.checkpoints import formats
from replica_broker.log.errors import MalformedFile
from replica_broker.log.folder_names import is_log_folder, name_to_delete, topic_partition_of

_names = st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True).map(TopicName)
_partitions = st.builds(TopicPartition, _names, st.integers(0, 2**31 - 1).map(PartitionId))


@given(st.dictionaries(_partitions, st.integers(0, 2**63 - 1), max_size=5))
def test_offsets_are_read_as_they_were_written(offsets: dict[TopicPartition, int]) -> None:
    assert formats.decode_offsets("f", formats.encode_offsets(offsets)) == offsets


@given(st.lists(st.integers(0, 2**31 - 1), unique=True, max_size=5).map(sorted))
def test_epochs_are_read_as_they_were_written(numbers: list[int]) -> None:
    entries = [(LeaderEpoch(number), number * 7) for number in numbers]
    assert formats.decode_epochs("f", formats.encode_epochs(entries)) == entries


@given(st.uuids())
def test_topic_ids_are_read_as_they_were_written(topic_id: UUID) -> None:
    written = formats.encode_partition_metadata(TopicId(topic_id))
    for content in (written, written + b"\n"):
        assert formats.decode_partition_metadata("f", content) == topic_id


@pytest.mark.parametrize(
    "decode",
    [
        formats.decode_offsets,
        formats.decode_epochs,
        formats.decode_partition_metadata,
        formats.decode_meta_properties,
    ],
)
@given(content=st.one_of(st.binary(), st.text(alphabet="01 9\nav:-_=\\u").map(str.encode)))
def test_any_bytes_are_a_value_or_malformed(decode: Callable[[str, bytes], object], content: bytes) -> None:
    with suppress(MalformedFile):
        decode("f", content)


@given(_partitions)
def test_folders_are_named_after_partitions(where: TopicPartition) -> None:
    assert topic_partition_of(str(where)) == where
    name = name_to_delete(where)
    assert len(name) <= 255
    assert name.endswith("-delete")
    assert not is_log_folder(name)


@pytest.mark.parametrize(
    "name", ["orders", "orders-", "-0", "orders-01", "orders-2147483648", "a b-0", "orders-0/x", "orders-٣"]
)
def test_other_folders_are_no_logs(name: str) -> None:
    assert not is_log_folder(name)
    with pytest.raises(ValueError, match="TOPIC-PARTITION"):
        topic_partition_of(name)
