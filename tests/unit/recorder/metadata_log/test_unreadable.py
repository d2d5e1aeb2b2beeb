"""An unreadable log: all records before are recorded, however answers are cut, and the error says what to do."""

import gzip

import pytest

from controller_core.recorder.event_numbers import read_position
from controller_core.recorder.metadata_log.batches import BatchReader, LogUnreadable
from tests.unit.journal.memory import MemoryJournal
from tests.unit.recorder.metadata_log import logs
from tests.unit.recorder.metadata_log.followed import Followed, cluster, follow_quorum, make_ended
from tests.unit.recorder.metadata_log.quorums import looker_of, serve
from tests.unit.recorder.watching import list_recorded

MOST_LOOKS = 5
NEWER = logs.batch(10, logs.frame(5, 9))
"""A version of a known record that is not known."""
CORRUPT = logs.batch(10, logs.NO_OP)[:-1] + b"?"
HUGE = logs.batch(10, logs.NO_OP)[:8] + (1 << 30).to_bytes(4, "big") + bytes(100)
IMPOSSIBLE = logs.batch(10, logs.topic())
"""A topic that is there already."""
WHAT_IS_UNREADABLE = {
    "newer": (NEWER, "use a release of Kontroller that knows it"),
    "corrupt": (CORRUPT, "does not have the CRC"),
    "huge": (HUGE, "says that it has 1073741836 bytes"),
    "impossible": (IMPOSSIBLE, "which exists"),
}


async def record_until_unreadable(found: Followed, said: str) -> list[int | None]:
    """The offsets of the states of partitions."""

    async def look_on() -> None:
        for _ in range(MOST_LOOKS):
            await found.look()

    with pytest.raises(LogUnreadable, match=said):
        await look_on()
    states = [line for line in found.lines() if line.kind == "leadership" and not line.snapshot]
    return [read_position(line.correlation_id) for line in states]


@pytest.mark.parametrize("most_batches", [None, 1])
@pytest.mark.parametrize("which", WHAT_IS_UNREADABLE)
async def test_all_before_what_cannot_be_read_is_recorded(which: str, most_batches: int | None) -> None:
    unreadable, said = WHAT_IS_UNREADABLE[which]
    quorum = cluster()
    async with follow_quorum(quorum) as found:
        quorum.most_batches = most_batches
        quorum.append(logs.batch(8, logs.partition_change(0, isr=[1])))
        quorum.append(logs.batch(9, logs.partition_change(0, isr=[1, 2])))
        quorum.append(unreadable)
        quorum.append(logs.batch(11, logs.partition_change(0, isr=[2])))
        assert await record_until_unreadable(found, said) == [8, 9]


async def test_a_leader_that_never_sends_a_batch_whole_is_not_asked_for_ever() -> None:
    quorum = cluster()
    async with follow_quorum(quorum) as found:
        quorum.append(logs.batch(8, logs.NO_OP)[:-1])
        with pytest.raises(LogUnreadable, match="no batch from offset 8 of the metadata log on is whole"):
            await found.look()


async def test_a_journal_is_gone_on_with_up_to_what_cannot_be_read_and_one_that_begins_does_not() -> None:
    quorum = cluster()
    async with follow_quorum(quorum) as whole:
        quorum.append(logs.batch(8, logs.partition_change(0, isr=[1])))
        await whole.look()
        quorum.append(logs.batch(9, logs.partition_change(0, isr=[1, 2])))
        quorum.append(NEWER)
        ended = make_ended(whole.lines())
        looker = looker_of(quorum, since=(8, 101, 1))
        await looker.begin(0)
        again = Followed(looker, MemoryJournal(), ended)
        assert await record_until_unreadable(again, "has version 9") == [9]
        looker.close()
        for since in (None, (77, 101, 1)):
            new = looker_of(quorum, since=since)
            with pytest.raises(LogUnreadable):
                await new.begin(0)
            new.close()


async def test_what_cannot_be_read_is_no_trouble_where_another_leader_has_something_else_in_its_place() -> None:
    quorum = cluster()
    async with follow_quorum(quorum) as found:
        quorum.append(logs.batch(8, logs.partition_change(0, isr=[1])), logs.batch(9, logs.NO_OP), is_decided=False)
        quorum.append(CORRUPT, is_decided=False)
        assert await found.look() == []
        assert await found.look() == []
        quorum.decided = 10
        assert list_recorded(await found.look()) == [("leadership", "alter_partition")]
        quorum.log[-1:] = [(10, 10, logs.batch(10, logs.partition_change(0, isr=[1, 2])))]
        quorum.decided = 11
        assert list_recorded(await found.look()) == [("leadership", "alter_partition")]


async def test_a_snapshot_that_cannot_be_read_is_told() -> None:
    quorum = cluster()
    async with serve(quorum):
        quorum.start, quorum.snapshot = 50, (50, 1, logs.batch(0, logs.frame(5, 9)))
        looker = looker_of(quorum)
        with pytest.raises(LogUnreadable):
            await looker.begin(0)
        looker.close()


def test_what_decompresses_to_more_than_a_batch_may_have_is_refused() -> None:
    body = gzip.compress(bytes(100 << 20))
    with pytest.raises(LogUnreadable, match="at most"):
        list(BatchReader().read(logs.pack_record(0, body)))
    [plain] = BatchReader().read(logs.pack_record(0, gzip.compress(logs.body(logs.topic()))))
    assert plain.records[0].value == logs.topic()


@pytest.mark.parametrize("resource", ["9" * 5000, "two"])
async def test_a_broker_that_is_no_number_is_refused(resource: str) -> None:
    quorum = cluster()
    async with follow_quorum(quorum) as found:
        quorum.append(logs.batch(8, logs.config(4, resource, "min.insync.replicas", "2")))
        with pytest.raises(LogUnreadable, match="which is not a broker id"):
            await found.look()


async def test_a_broker_may_be_named_as_java_reads_numbers() -> None:
    quorum = cluster()
    async with follow_quorum(quorum) as found:
        quorum.append(logs.batch(8, logs.config(4, "+1", "min.insync.replicas", "2")))
        await found.look()
        assert found.image().broker_configs == {1: {"config": {"min.insync.replicas": "2"}}}
