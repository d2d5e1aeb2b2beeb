"""Kubernetes, as the operator sees it: the API server behind a seam, and the last known state of the objects."""
