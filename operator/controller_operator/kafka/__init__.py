"""Kafka, as the operator sees it: the view of a cluster, and the requests and writes that change it."""
