"""The cost of polling a cluster without ZooKeeper, and the delay until a change made elsewhere is seen.

`watched` is the cluster with the operator's poller, `changes` are another client's changes, `__main__` measures.
"""
