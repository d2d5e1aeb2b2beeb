"""Reassignments and elections on request."""
