"""Kafka, as the operator sees it: the view of a cluster, and what may be asked to be done to it."""
