"""Configurations change, and one of them concerns the controller: whether a topic allows unclean leader elections.
The journal records some more, and of brokers' own files what these say when they are asked.

Whoever changes a configuration leaves a sequential notification; others remove it after a while. A partition that waits
for its in-sync replicas gets a leader when its topic's configuration says that it may have another one.
"""

from collections.abc import Iterable
from typing import Final

from controller_core.controller.loop.events import ConfigsChanged, StaticConfigAnswered
from controller_core.controller.machines import partition_machine
from controller_core.controller.term.term import Term
from controller_core.controller.znodes import recorded_configs, topic_configs
from controller_core.model.ids import TopicName
from controller_core.model.transitions import PartitionStatus
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode

_TOPIC: Final = "topics/"
_NAME: Final = paths.CONFIG_CHANGE_PREFIX.rpartition("/")[2]


async def watch_configs(term: Term) -> None:
    """Begins to watch; what was changed before is in the configurations that elections read."""
    term.state.remember_config_changes(await _notifications(term))


async def on_configs_changed(term: Term) -> None:
    """Elects leaders where a changed configuration allows one. Many changes are looked at together."""
    present = await _notifications(term)
    new = [paths.config_change(name) for name in sorted(present - term.state.seen_config_changes)]
    term.state.remember_config_changes(present)
    changed: set[str] = set()
    for path, node in zip(new, await term.zk.read_many(new), strict=True):
        try:
            changed.update((codecs.decode_config_change(node.data),) if node else ())
        except MalformedZnode as error:
            term.state.unusable.report(path, "unreadable configuration notification skipped", error)
    if not changed:
        return
    await recorded_configs.refresh(term, [f"{paths.CONFIG}/{entity}" for entity in sorted(changed)])
    await _elect(term, changed)


def ask_for_static_configs(term: Term) -> None:
    """Asks the brokers that have not said what their files configure since they registered; answers are events.

    Nothing waits for that, and there is one round of it at a time."""
    missing = term.static_configs.missing(term.state)
    if missing and not term.static_configs.is_asking:
        term.end_with_term(term.static_configs.ask(missing))


def on_static_config_answered(term: Term, answered: StaticConfigAnswered) -> None:
    """Takes an answer of a broker that is still the one that was asked."""
    broker = term.state.brokers.get(answered.broker)
    if broker is not None and broker.epoch == answered.config.broker_epoch and answered.config.config:
        term.state.set_static_config(broker.id, answered.config)


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


async def _notifications(term: Term) -> frozenset[str]:
    """The names of the notifications; what else somebody put beside them is none.

    Which are new is known by the names that were there, not by their numbers: one with a number from the future, which
    anybody may put there, would else be the last that is ever seen."""
    children = await term.watched.children(paths.CONFIG_CHANGES, ConfigsChanged())
    term.state.unusable.keep_among(paths.CONFIG_CHANGES, children)
    return frozenset(name for name in children if name.startswith(_NAME))
