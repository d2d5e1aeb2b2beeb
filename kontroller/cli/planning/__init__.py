"""Commands that take snapshots of loads, and make plans of moves from them."""
