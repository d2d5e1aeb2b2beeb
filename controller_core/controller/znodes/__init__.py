"""The znodes that operations read and write, one module for each kind."""
