"""A simulated ZooKeeper for tests of answers that need one."""

from tests.unit.replica_broker.membership.conftest import cluster

__all__ = ["cluster"]
