"""The configurations that the journal records, loaded into the cluster state only if there is a journal.

The controller itself does not need them in memory, because elections read their configuration when they need it. They
are read when a term begins, when a topic appears, and after change notifications. Those that an election reads are
recorded too, so that the journal has them before their consequences.
"""

from collections.abc import Iterable

from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term.rights import Remembers
from controller_core.journal import configs
from controller_core.model.ids import BrokerId, TopicName
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import ZkNode


async def load_of_brokers(term: Remembers) -> None:
    """Read the dynamic configurations of all brokers that have one, and their common default."""
    if term.journal.is_kept:
        names = (await term.zk.children_many([paths.BROKER_CONFIGS]))[0] or ()
        await refresh(term, [f"{paths.BROKER_CONFIGS}/{name}" for name in names])


async def load_of_topics(term: Remembers, topics: Iterable[TopicName]) -> None:
    """Read the configurations of topics that have just become known."""
    await refresh(term, map(paths.topic_config, topics))


async def refresh(term: Remembers, changed: Iterable[str]) -> None:
    """Read configurations again by their paths, except those that the journal does not record."""
    if not term.journal.is_kept:
        return
    recorded = [path for path in changed if _is_recorded(term.state, path)]
    for path, node in zip(recorded, await term.zk.read_many(recorded), strict=True):
        record(term, path, node)


def record(term: Remembers, path: str, node: ZkNode | None) -> None:
    """Record a configuration that was just read. An unreadable one keeps its former value."""
    if not term.journal.is_kept or not _is_recorded(term.state, path):
        return
    try:
        config = codecs.decode_config(node.data, path) if node else {}
    except MalformedZnode as error:
        term.state.unusable.report(path, "unreadable configuration, the journal keeps the former one", error)
        return
    term.state.unusable.clear(path)
    name = path.rpartition("/")[2]
    if path.startswith(f"{paths.TOPIC_CONFIGS}/"):
        term.state.set_topic_config(TopicName(name), configs.select_recorded(config, configs.TOPIC_CONFIGS))
    else:
        broker = None if name == paths.DEFAULT_ENTITY else BrokerId(int(name))
        term.state.set_broker_config(broker, configs.select_recorded(config, configs.BROKER_CONFIGS))


def _is_recorded(state: ReadOnlyState, path: str) -> bool:
    """Return True if it belongs to a known topic, to a broker, or to all brokers."""
    parent, _, name = path.rpartition("/")
    if parent == paths.TOPIC_CONFIGS:
        return name in state.topics
    return parent == paths.BROKER_CONFIGS and (name == paths.DEFAULT_ENTITY or paths.parse_broker_id(name) is not None)
