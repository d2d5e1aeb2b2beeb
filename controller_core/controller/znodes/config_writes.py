"""Writes of configuration in ZooKeeper: the entity's znode, and the notification that makes brokers read it. Throttles
are written as configurations, too."""

from collections.abc import Mapping, Sequence

from controller_core.controller.term.rights import Writes
from controller_core.zk import codecs, paths
from controller_core.zk.compare_and_set import ensure_znodes, put
from controller_core.zk.session import Create, CreateMode, WriteOp, ZkNode
from controller_core.zk.throttle_writes import Throttles


def write_config(path: str, config: Mapping[str, str], present: ZkNode | None) -> WriteOp:
    """Return the write of an entity's configuration, conditional on the version that was read."""
    return put(path, present, codecs.encode_config(config))


def notify(entity_path: str) -> WriteOp:
    """Return the notification that makes brokers read an entity's changes. `entity_path` is such as `users/alice`."""
    data = codecs.encode_config_change(entity_path)
    return Create(path=paths.CONFIG_CHANGE_PREFIX, data=data, mode=CreateMode.PERSISTENT_SEQUENTIAL)


async def ensure_paths(term: Writes, wanted: Sequence[str]) -> None:
    """Create parents that are missing, each listed after its own parent. Brokers create them at their first start."""
    await ensure_znodes(term.zk, [Create(path=path) for path in wanted], term.writer.transact)


def open_throttles(term: Writes) -> Throttles:
    """Return the throttles of reassignments, written as the controller."""
    return Throttles(term.zk, term.writer.transact, term.state.unusable.report_unwatched)
