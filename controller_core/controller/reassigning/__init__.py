"""Reassignments of partitions: which can be done, their twelve steps, and their throttles."""
