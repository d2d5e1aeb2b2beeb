"""A cluster without ZooKeeper in memory: what its controllers decide, and what its brokers answer.

Brokers apply at once what was decided, and there is no log: only what an operator sees and asks is here, as bytes. What it
has in common with Kafka's own is held by `tests/contract`.
"""

from simulation.kraft.cluster import QuorumCluster

__all__ = ["QuorumCluster"]
