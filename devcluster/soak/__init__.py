"""A soak: whatever may happen to a cluster happens to a real one, in an order that a seed decides. `make soak`.

`schedule` makes up what happens and when, from the seed alone; `performer` does it to the running servers, in as far as
their present state allows it; in the end everything is healed, and `checks` looks for whatever is not as it should be.
"""
