"""The reconciliation of one object at a time: the queue, the access to the object's cluster, and its plan."""
