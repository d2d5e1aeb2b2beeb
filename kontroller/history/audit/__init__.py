"""The invariants of a controller as predicates over its history. Violations have the events that prove them."""
