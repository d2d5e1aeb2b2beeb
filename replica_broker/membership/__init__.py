"""Cluster membership: registration, requests to the controller, and an orderly exit."""
