"""What is asked of a broker: one module for each API, and `served` has them all."""
