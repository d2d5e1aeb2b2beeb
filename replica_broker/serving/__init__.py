"""The APIs of the broker: one module for each API, and `served` with all of them."""
