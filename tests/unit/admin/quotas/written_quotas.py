"""Quotas as Kafka's tools write them."""

import json

from controller_core.admin.quotas.zk_quotas import RATE
from controller_core.model.quotas.entities import Entity
from controller_core.zk import paths
from controller_core.zk.session import Create, SetData, WriteOp
from simulation.zookeeper import SimulatedZooKeeper


def put(zookeeper: SimulatedZooKeeper, path: str, data: bytes) -> None:
    """Writes a znode, and those above it that are not there."""
    parts = path.split("/")
    above = ["/".join(parts[:count]) for count in range(2, len(parts))]
    writes: list[WriteOp] = [Create(path=each) for each in above if zookeeper.tree.read(each) is None]
    is_there = zookeeper.tree.read(path) is not None
    writes.append(SetData(path=path, data=data) if is_there else Create(path=path, data=data))
    zookeeper.transact(writes, zookeeper.new_session_id())


def set_rate(zookeeper: SimulatedZooKeeper, entity: Entity, rate: object) -> None:
    """Set the rate of partition changes a second. The names of the entity stand in paths."""
    put(zookeeper, paths.quota(*entity), json.dumps({"version": 1, "config": {RATE: str(rate)}}).encode())
