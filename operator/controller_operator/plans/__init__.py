"""The plan for each kind of object, as pure functions.

A planner gets an object as the API server stores it and the observed cluster, and returns a `Plan`: the status to
write, and the actions to carry out after that. It does no I/O and reads no clock. The object's status holds everything
that it must remember between two calls, so an operator that restarts between any two writes continues at the same
point.
"""
