"""A term: all that an operation has at hand while this process is the controller."""
