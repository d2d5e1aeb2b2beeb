"""Reassignments and elections by request."""
