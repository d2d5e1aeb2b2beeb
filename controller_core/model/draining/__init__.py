"""Checks that a broker can be stopped, and that it is back, from a snapshot of the cluster."""
