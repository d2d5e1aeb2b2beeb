"""The topic configuration that decides elections, read when it is needed."""

from collections.abc import Iterable

from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term.rights import Remembers
from controller_core.controller.znodes import recorded_configs
from controller_core.model.ids import TopicName
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import ZkNode

UNCLEAN_LEADER_ELECTION = "unclean.leader.election.enable"


async def find_allowing_unclean_election(term: Remembers, topics: Iterable[TopicName]) -> set[TopicName]:
    """Return the topics whose effective configuration allows a leader from outside the ISR.

    A topic without its own value has the dynamic default of the controller's own id, then that of all brokers, then the
    setting that holds in the cluster. An unreadable configuration never allows it, because the election may lose
    acknowledged messages.
    """
    names = sorted(topics)
    if not names:
        return set()
    defaults = [paths.broker_config(term.identity.id), paths.broker_config(None)]
    topic_paths = [paths.topic_config(name) for name in names]
    read = [*defaults, *topic_paths]
    own, cluster, *nodes = found = await term.zk.read_many(read)
    for path, node in zip(read, found, strict=True):
        recorded_configs.record(term, path, node)
    by_default = _read_value(
        term.state, defaults[1], cluster, default=term.cluster_settings.unclean_leader_election_enable
    )
    by_default = _read_value(term.state, defaults[0], own, default=by_default)
    allowed = (
        _read_value(term.state, path, node, default=by_default) for path, node in zip(topic_paths, nodes, strict=True)
    )
    return {name for name, allows in zip(names, allowed, strict=True) if allows}


def _read_value(state: ReadOnlyState, path: str, node: ZkNode | None, *, default: bool) -> bool:
    """Return a configuration's value for unclean elections, or the default."""
    try:
        value = codecs.decode_config(node.data, path).get(UNCLEAN_LEADER_ELECTION) if node else None
    except MalformedZnode as error:
        state.unusable.report(path, "unreadable configuration: no unclean election", error)
        return False
    state.unusable.clear(path)
    return default if value is None else value.strip().lower() == "true"
