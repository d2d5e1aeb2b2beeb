"""Keeps a `Snapshot` per cluster current, and notifies listeners: by watches, or without ZooKeeper by polling.

`observation` is the common part. `observer` reads and watches the znodes, `poller` asks brokers.
"""
