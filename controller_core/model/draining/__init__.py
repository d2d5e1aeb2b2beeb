"""Checks that a broker can be stopped, and that it is back, from a picture of the cluster."""
