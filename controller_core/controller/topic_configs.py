"""The topic configuration that decides elections, read when it is needed."""

from collections.abc import Iterable

import structlog

from controller_core.controller.term import Term
from controller_core.model.ids import TopicName
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import ZkNode

UNCLEAN_LEADER_ELECTION = "unclean.leader.election.enable"

log = structlog.get_logger()


async def allowing_unclean_election(term: Term, topics: Iterable[TopicName]) -> set[TopicName]:
    """Those of the topics whose effective configuration allows a leader from outside the ISR.

    A topic without a word of its own has the controller's default; one with an unreadable configuration never allows it,
    because the election may lose acknowledged messages.
    """
    names = sorted(topics)
    nodes = await term.zk.read_many([paths.topic_config(name) for name in names])
    return {name for name, node in zip(names, nodes, strict=True) if _allows(term, name, node)}


def _allows(term: Term, topic: TopicName, node: ZkNode | None) -> bool:
    if node is None:
        return term.settings.unclean_leader_election_enable
    try:
        config = codecs.decode_config(node.data)
    except MalformedZnode as error:
        log.error("unreadable topic configuration: no unclean election", topic=topic, error=str(error))
        return False
    value = config.get(UNCLEAN_LEADER_ELECTION)
    return term.settings.unclean_leader_election_enable if value is None else value.lower() == "true"
