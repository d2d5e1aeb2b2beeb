"""Configuration changes, and the settings in brokers' files.

Tools that change a configuration leave a sequential notification, and remove it after a while. If a topic's new
configuration allows an unclean election, its partitions that wait for in-sync replicas get a leader. The journal
records other configurations too. Brokers return the settings in their files when they are asked (`static_configs`).
"""

from collections.abc import Container
from typing import Final

from controller_core.controller.loop.events import ConfigsChanged, StaticConfigAnswered, TopicDeletionsRequested
from controller_core.controller.machines import partition_machine
from controller_core.controller.term.rights import Reads, Remembers, Sends
from controller_core.controller.term.term import Term
from controller_core.controller.znodes import recorded_configs, topic_configs
from controller_core.model.ids import TopicName, TopicPartition
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
    defaults = {f"brokers/{paths.DEFAULT_ENTITY}", f"brokers/{term.identity.id}"}
    topics = {TopicName(entity.removeprefix(_TOPIC)) for entity in changed if entity.startswith(_TOPIC)}
    electable = await _find_electable(term, topics if defaults.isdisjoint(changed) else None)
    await partition_machine.bring_online(term, electable)


def load_static_configs(term: Sends) -> None:
    """Take over what the brokers answered before the term."""
    for broker in term.state.brokers.values():
        answer = term.static_configs.find_answer(broker)
        if answer is not None:
            term.state.set_static_config(broker.id, answer)
    term.static_configs.report(term.cluster_settings.find_differences(term.identity.id))


async def on_static_config_answered(term: Term, answered: StaticConfigAnswered) -> None:
    """Remember the answer, if the broker is still the one that was asked, and do what waited for it."""
    broker = term.state.brokers.get(answered.broker)
    if broker is None or broker.epoch != answered.config.broker_epoch or not answered.config.config:
        return
    settings = term.cluster_settings
    was_unclean, could_delete = settings.unclean_leader_election_enable, settings.delete_topic_enable
    term.state.set_static_config(broker.id, answered.config)
    term.static_configs.report(settings.find_differences(term.identity.id))
    if settings.unclean_leader_election_enable and not was_unclean:
        await partition_machine.bring_online(term, await _find_electable(term, None))
    if settings.delete_topic_enable != could_delete:
        term.enqueue(TopicDeletionsRequested())


async def _find_electable(term: Remembers, topics: Container[TopicName] | None) -> list[TopicPartition]:
    """Return the waiting partitions whose configuration allows an unclean election: of these topics, or of all."""
    waiting = [
        partition
        for partition in term.state.list_partitions_in(PartitionStatus.OFFLINE, PartitionStatus.NEW)
        if (topics is None or partition.topic in topics) and not term.state.is_being_deleted(partition.topic)
    ]
    allowed = await topic_configs.find_allowing_unclean_election(term, {partition.topic for partition in waiting})
    return [partition for partition in waiting if partition.topic in allowed]


async def _notifications(term: Reads) -> frozenset[str]:
    """Return the names of the notifications, without other znodes that somebody put there.

    New notifications are recognized by their names, not by the highest number. Anybody may create one with a number far
    ahead, and it would hide all that follow.
    """
    children = await term.watched.read_children(paths.CONFIG_CHANGES, ConfigsChanged())
    term.state.unusable.keep_among(paths.CONFIG_CHANGES, children)
    return frozenset(name for name in children if name.startswith(_NAME))
