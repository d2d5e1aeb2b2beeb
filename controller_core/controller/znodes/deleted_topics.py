"""Recently deleted topics, so that no broker keeps serving clients the metadata of one.

UpdateMetadata carries only changes: a broker that misses a deletion shows the topic until its process ends. It misses
it if it hangs beyond its session and then continues with its memory, or if the controller dies between the deletion and
the request. So a topic is entered into `/kontroller/deleted_topics` before its deletion begins. Whenever a broker or a
controller starts, brokers are sent the deletion of the listed topics that are not served.

The list is bounded. It must be longer than the deletions while a broker hangs, but need not be complete, because a
broker that restarted has forgotten everything anyway. A list of a later version is neither read nor written.
"""

from collections.abc import Collection, Mapping
from typing import Final

from controller_core.controller.term.rights import Remembers, Sends, Writes
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import LaterVersion, MalformedZnode
from controller_core.zk.compare_and_set import Contended, compare_and_set, ensure_znodes, make_reader, put
from controller_core.zk.session import Create, TransactionFailed, WriteOp, ZkNode

MOST_TOPICS: Final = 500
MOST_PARTITIONS: Final = 20_000


async def load(term: Remembers) -> None:
    """Read the list when a term begins. An unreadable one is reported, and replaced at the next deletion."""
    node = (await term.zk.read_many([paths.DELETED_TOPICS]))[0]
    if node is None:
        return
    try:
        term.state.set_deleted_topics(codecs.decode_deleted_topics(node.data))
    except LaterVersion as error:
        term.state.unusable.report(paths.DELETED_TOPICS, "list of deleted topics is left alone", error)
    except MalformedZnode as error:
        term.state.unusable.report(paths.DELETED_TOPICS, "unreadable list of deleted topics, ignored", error)


async def remember(term: Writes, topics: Mapping[TopicName, int]) -> None:
    """Enter topics with their numbers of partitions, before anything of them is deleted."""
    known = dict(term.state.deleted_topics)
    for topic, partitions in topics.items():
        known[topic] = max(partitions, known.pop(topic, 0))
    _keep_latest(known)
    term.state.set_deleted_topics(known)
    data = codecs.encode_deleted_topics(known)

    def enter(node: ZkNode | None) -> list[WriteOp]:
        return [] if node is not None and _is_of_later_version(node) else [put(paths.DELETED_TOPICS, node, data)]

    try:
        await ensure_znodes(term.zk, [Create(path=paths.KONTROLLER)], term.writer.transact)
        is_written = (
            await compare_and_set(make_reader(term.zk, paths.DELETED_TOPICS), enter, term.writer.transact)
        ).is_written
    except (Contended, TransactionFailed) as why:
        term.state.unusable.report(paths.DELETED_TOPICS, "list of deleted topics not written", why)
        return
    if is_written:
        term.state.unusable.clear(paths.DELETED_TOPICS)


def _is_of_later_version(node: ZkNode) -> bool:
    try:
        codecs.decode_deleted_topics(node.data)
    except MalformedZnode as error:
        return isinstance(error, LaterVersion)
    return False


def make_forgotten(term: Sends, brokers: Collection[BrokerId]) -> None:
    """Make brokers forget deleted topics, or the partitions that a topic's successor does not have.

    If the successor's znode is unreadable, wholly or partly, its unknown partitions may exist, and are not forgotten.
    """
    for topic, count in term.state.deleted_topics.items():
        deletion = term.state.deletions.get(topic)
        is_leaving = deletion is not None and deletion.started
        partitions = [TopicPartition(topic, PartitionId(number)) for number in range(count)]
        forgotten = partitions if is_leaving else [p for p in partitions if not term.state.may_have(p)]
        successor = None if is_leaving else term.state.topics.get(topic)
        term.batch.forget_metadata(forgotten, successor.topic_id if successor else None, brokers)


def _keep_latest(known: dict[TopicName, int]) -> None:
    """Drop the oldest entries. The last one stays, whatever its size."""
    while len(known) > 1 and (len(known) > MOST_TOPICS or sum(known.values()) > MOST_PARTITIONS):
        del known[next(iter(known))]
