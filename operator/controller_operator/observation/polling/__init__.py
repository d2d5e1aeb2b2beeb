"""Keeps the view of a cluster without ZooKeeper current, by asking its brokers.

`questions` asks, `answers` reads, `known_cluster` makes views of what was read, `pace` says when to look again, `poller`
is the loop.
"""
