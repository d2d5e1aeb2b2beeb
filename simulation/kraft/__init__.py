"""A KRaft cluster in memory: the decisions of its controllers, and the answers of its brokers.

Brokers apply decisions at once, and there is no log. Only what the operator sees and asks exists, encoded as bytes.
`tests/contract` compares it with a real cluster.
"""

from simulation.kraft.cluster import QuorumCluster

__all__ = ["QuorumCluster"]
