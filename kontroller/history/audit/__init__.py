"""The invariants of a controller, as predicates over its history: violations, with the events that prove them."""
