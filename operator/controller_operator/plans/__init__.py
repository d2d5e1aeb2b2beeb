"""The decision about each kind of object, as pure functions.

`decision.decide` gets an object as the API server stores it and its situation: the observed cluster and the other
objects that matter. It returns a `Plan`: the status to write, and the steps to carry out after that. The `planner` of
each kind has its own `decide`. They do no I/O and read no clock. The object's status holds everything that must be
remembered between two calls, so an operator that restarts between any two writes continues at the same point.
"""
