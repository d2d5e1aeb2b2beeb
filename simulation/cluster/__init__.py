"""A simulated cluster: znodes, registered brokers, controllers, and the requests of leaders."""

from simulation.cluster.cluster import Cluster
from simulation.cluster.names import CONTROLLER, ids, tp
from simulation.cluster.requests import alter_partition, alter_reassignments

__all__ = ["CONTROLLER", "Cluster", "alter_partition", "alter_reassignments", "ids", "tp"]
