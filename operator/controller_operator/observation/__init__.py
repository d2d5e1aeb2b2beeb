"""Keeps a `ClusterView` per cluster current, by watches only, and notifies who wants to know.

`observer` reads and watches the znodes, `znodes` turns what was read into views, `pool` holds one observer per
ZooKeeper that any KafkaCluster names.
"""
