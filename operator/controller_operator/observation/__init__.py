"""Keeps a `Snapshot` per cluster current, and notifies listeners: by watches, or without ZooKeeper by polling.

`observation` and `topic_views` are the common parts. `observer` reads and watches the znodes, and `znodes` makes views
of them. `polling` asks brokers.
"""
