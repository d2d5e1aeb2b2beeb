"""Every test of membership has a ZooKeeper of its own."""

from tests.unit.replica_broker.membership.clusters import joining

__all__ = ["joining"]
