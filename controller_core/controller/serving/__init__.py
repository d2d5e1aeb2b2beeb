"""Requests that the controller answers during a term, and the metrics of the controller."""
