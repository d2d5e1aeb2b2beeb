"""What it costs to look at a cluster without ZooKeeper again and again, and how soon a change made elsewhere is seen.

`watched` is the cluster with the operator's poller at work, `changes` what somebody else does to it, `__main__` measures.
"""
