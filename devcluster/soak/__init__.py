"""A soak test: a seed decides which faults and requests happen to a real cluster, and in which order. `make soak`.

`schedule` derives the operations and their times from the seed alone. `cluster` performs them on the running servers,
as far as their present state allows. At the end everything is healed, and `checks` looks for anything that is wrong.
"""
