"""Retention of the list of removed replicas: entries of brokers that are gone for long are dropped.

A controller cannot know which brokers are gone for good, and their entries would stay for ever. So they are kept for a
generous time after the broker was last present, and then dropped with an error that names it. If the broker returns
after all, its disks have logs without an owner, as they always do with Kafka's controller.

The entries of live brokers are rewritten daily, so their last write shows when a broker was last present. A clock may
be wrong: that of the server that stamped the write, or ours. So the time must be over by both clocks: ZooKeeper's,
which stamps a write made now, and this machine's.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import structlog

from controller_core.controller.loop.events import LedgerDue
from controller_core.controller.term.rights import Reads, Writes
from controller_core.controller.znodes import removed_replicas
from controller_core.model.ids import BrokerId, PartitionReplica
from controller_core.model.wording import format_count, list_some
from controller_core.zk import paths
from controller_core.zk.session import SetData, ZkNode

DAY_MS: Final = 24 * 60 * 60 * 1000

log = structlog.get_logger()


async def on_ledger_due(term: Writes) -> None:
    """Check the removed replicas when a term begins, and every day."""
    term.enqueue_later(LedgerDue(), DAY_MS)
    retention_ms = term.settings.removed_replicas_retention_days * DAY_MS
    if not retention_ms or not term.state.removed_replicas:
        return
    now_ms = min(await _zookeeper_now_ms(term), term.clock.now_ms())
    entries = await _entries(term)
    present = {replica: node for replica, node in entries.items() if replica.broker in term.state.brokers}
    await term.writer.write(
        {
            replica: [SetData(path=paths.replica_removal(replica), data=node.data)]
            for replica, node in present.items()
            if now_ms - node.mtime_ms >= DAY_MS
        }
    )
    over = [r for r, node in entries.items() if r not in present and now_ms - node.mtime_ms > retention_ms]
    _report(term, over)
    await removed_replicas.strike(term, over)


async def _zookeeper_now_ms(term: Writes) -> int:
    """Return the time of the server that leads ZooKeeper."""
    await term.writer.write({"now": [SetData(path=paths.REMOVED_REPLICAS, data=b"")]})
    (node,) = await term.zk.read_many([paths.REMOVED_REPLICAS])
    return node.mtime_ms if node else 0


async def _entries(term: Reads) -> Mapping[PartitionReplica, ZkNode]:
    replicas = list(term.state.removed_replicas)
    nodes = await term.zk.read_many(list(map(paths.replica_removal, replicas)))
    return {replica: node for replica, node in zip(replicas, nodes, strict=True) if node is not None}


def _report(term: Reads, over: list[PartitionReplica]) -> None:
    by_broker: defaultdict[BrokerId, list[PartitionReplica]] = defaultdict(list)
    for replica in over:
        by_broker[replica.broker].append(replica)
    for broker, replicas in by_broker.items():
        log.error(
            "replicas that an absent broker has to delete are forgotten: empty its disks before it returns",
            broker=broker,
            days=term.settings.removed_replicas_retention_days,
            replicas=format_count(len(replicas), "replica"),
            partitions=list_some(replica.topic_partition for replica in replicas),
        )
