"""Kubernetes, as the operator sees it: the API server behind a seam, and the objects that it showed last."""
