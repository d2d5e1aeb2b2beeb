"""Configuration in ZooKeeper: the entity's znode, and the notification that makes brokers read it."""

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from controller_core.controller.term.term import Term
from controller_core.zk import codecs, paths
from controller_core.zk.session import Create, CreateMode, NodeExists, SetData, WriteOp, ZkNode


def write_config(path: str, config: Mapping[str, str], present: ZkNode | None) -> WriteOp:
    """The write of an entity's configuration, conditional on what was read of it."""
    data = codecs.encode_config(config)
    return Create(path=path, data=data) if present is None else SetData(path=path, data=data, version=present.version)


def notify(entity_path: str) -> WriteOp:
    """The notification that an entity has changed; brokers read it then. `entity_path` is such as `users/alice`."""
    data = codecs.encode_config_change(entity_path)
    return Create(path=paths.CONFIG_CHANGE_PREFIX, data=data, mode=CreateMode.PERSISTENT_SEQUENTIAL)


async def ensure_paths(term: Term, wanted: Sequence[str]) -> None:
    """Makes sure that parents are there, each given after its own parent. Brokers make them at their first start."""
    missing = [path for path, node in zip(wanted, await term.zk.read_many(wanted), strict=True) if node is None]
    for path in missing:
        failed = (await term.writer.write({path: [Create(path=path)]})).failed
        if failed and not isinstance(failed[path], NodeExists):
            raise failed[path]


def sanitized(name: str) -> str:
    """The name of a user in paths, as Kafka's `Sanitizer` encodes it."""
    return quote(name, safe="").replace("~", "%7E")
