"""What to do about each kind of object, as pure functions.

A planner gets an object as the API server stores it and the cluster as ZooKeeper shows it, and returns a `Plan`: the
status to write, and the actions to carry out after that. It knows no I/O and no clock; what it must remember between two
calls it finds in the object's status, so an operator that is restarted between any two writes goes on where it was.
"""
