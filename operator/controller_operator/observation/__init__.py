"""Keeps a `ClusterView` per cluster current, and notifies who wants to know: by watches, or, without ZooKeeper, by asking.

`observation` and `topic_views` are what both have in common; `observer` reads and watches the znodes, `znodes` turns what
was read into views; `polling` asks brokers.
"""
