"""Partition reassignments: moves, their progress, and their throttles."""
