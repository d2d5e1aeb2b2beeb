"""Configurations change, and one of them concerns the controller: whether a topic allows unclean leader elections.
The journal records some more.

Whoever changes a configuration leaves a sequential notification; others remove it after a while. A partition that waits
for its in-sync replicas gets a leader when its topic is told that it may have another one.
"""

import re
from collections.abc import Iterable
from typing import Final

import structlog

from controller_core.controller import partition_machine, recorded_configs, topic_configs
from controller_core.controller.cluster_state import NO_CONFIG_CHANGE
from controller_core.controller.events import ConfigsChanged
from controller_core.controller.term import Term
from controller_core.model.ids import TopicName
from controller_core.model.transitions import PartitionStatus
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode

log = structlog.get_logger()

_TOPIC: Final = "topics/"
_NAME: Final = re.compile(r"config_change_(?P<number>\d+)")


async def watch_configs(term: Term) -> None:
    """Begins to watch; what was changed before is in the configurations that elections read."""
    term.state.last_config_change = max(await _notifications(term), default=NO_CONFIG_CHANGE)


async def on_configs_changed(term: Term) -> None:
    """Elects leaders where a changed configuration allows one. Many changes are looked at together."""
    present = await _notifications(term)
    new = [paths.config_change(present[number]) for number in present if number > term.state.last_config_change]
    if not new:
        return
    term.state.last_config_change = max(present)
    nodes = await term.zk.read_many(new)
    changed: set[str] = set()
    for path, node in zip(new, nodes, strict=True):
        try:
            changed.update((codecs.decode_config_change(node.data),) if node else ())
        except MalformedZnode as error:
            log.error("unreadable configuration notification skipped", path=path, error=str(error))
    await recorded_configs.refresh(term, [f"{paths.CONFIG}/{entity}" for entity in sorted(changed)])
    await _elect(term, changed)


async def _elect(term: Term, changed: Iterable[str]) -> None:
    defaults = {f"brokers/{paths.DEFAULT_ENTITY}", f"brokers/{term.identity.id}"}
    every_topic = not defaults.isdisjoint(changed)
    topics = {TopicName(entity.removeprefix(_TOPIC)) for entity in changed if entity.startswith(_TOPIC)}
    waiting = [
        partition
        for partition in term.state.partitions_in(PartitionStatus.OFFLINE, PartitionStatus.NEW)
        if (every_topic or partition.topic in topics) and not term.state.is_being_deleted(partition.topic)
    ]
    allowed = await topic_configs.allowing_unclean_election(term, {partition.topic for partition in waiting})
    await partition_machine.to_online(term, [partition for partition in waiting if partition.topic in allowed])


async def _notifications(term: Term) -> dict[int, str]:
    """The notifications by their sequence number; what else somebody put beside them is none."""
    children = await term.watched.children(paths.CONFIG_CHANGES, ConfigsChanged())
    return {int(match["number"]): name for name in children if (match := _NAME.fullmatch(name))}
