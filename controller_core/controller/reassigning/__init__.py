"""Reassignments of partitions: their validation, their twelve steps, and their throttles."""
