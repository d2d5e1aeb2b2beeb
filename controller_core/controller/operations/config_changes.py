"""Configuration changes. One of them concerns the controller: if a topic allows unclean leader elections.

Tools that change a configuration leave a sequential notification, and remove it after a while. If a topic's new
configuration allows an unclean election, its partitions that wait for in-sync replicas get a leader. The journal
records other settings too, and the static configuration that brokers return when they are asked.
"""

from collections.abc import Iterable
from typing import Final

from controller_core.controller.loop.events import ConfigsChanged, StaticConfigAnswered
from controller_core.controller.machines import partition_machine
from controller_core.controller.term.rights import Reads, Remembers, Sends
from controller_core.controller.term.term import Term
from controller_core.controller.znodes import recorded_configs, topic_configs
from controller_core.model.ids import TopicName
from controller_core.model.transitions import PartitionStatus
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode

_TOPIC: Final = "topics/"
_NAME: Final = paths.CONFIG_CHANGE_PREFIX.rpartition("/")[2]


async def watch_configs(term: Remembers) -> None:
    """Start to watch. Elections read the configurations themselves, so earlier changes need no handling."""
    term.state.remember_config_changes(await _notifications(term))


async def on_configs_changed(term: Term) -> None:
    """Elect leaders where a changed configuration now allows it. Many changes are handled together."""
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


def ask_for_static_configs(term: Sends) -> None:
    """Ask the brokers for their static configuration, if they have not answered since they registered.

    Nothing waits for the answers, which arrive as events. Only one round runs at a time.
    """
    missing = term.static_configs.find_missing(term.state)
    if missing and not term.static_configs.is_asking:
        term.end_with_term(term.static_configs.ask(missing))


def on_static_config_answered(term: Remembers, answered: StaticConfigAnswered) -> None:
    """Record the answer, if the broker is still the one that was asked."""
    broker = term.state.brokers.get(answered.broker)
    if broker is not None and broker.epoch == answered.config.broker_epoch and answered.config.config:
        term.state.set_static_config(broker.id, answered.config)


async def _elect(term: Term, changed: Iterable[str]) -> None:
    defaults = {f"brokers/{paths.DEFAULT_ENTITY}", f"brokers/{term.identity.id}"}
    every_topic = not defaults.isdisjoint(changed)
    topics = {TopicName(entity.removeprefix(_TOPIC)) for entity in changed if entity.startswith(_TOPIC)}
    waiting = [
        partition
        for partition in term.state.list_partitions_in(PartitionStatus.OFFLINE, PartitionStatus.NEW)
        if (every_topic or partition.topic in topics) and not term.state.is_being_deleted(partition.topic)
    ]
    allowed = await topic_configs.find_allowing_unclean_election(term, {partition.topic for partition in waiting})
    await partition_machine.bring_online(term, [partition for partition in waiting if partition.topic in allowed])


async def _notifications(term: Reads) -> frozenset[str]:
    """Return the names of the notifications, without other znodes that somebody put there.

    New notifications are recognized by their names, not by the highest number. Anybody may create one with a number far
    ahead, and it would hide all that follow.
    """
    children = await term.watched.read_children(paths.CONFIG_CHANGES, ConfigsChanged())
    term.state.unusable.keep_among(paths.CONFIG_CHANGES, children)
    return frozenset(name for name in children if name.startswith(_NAME))
