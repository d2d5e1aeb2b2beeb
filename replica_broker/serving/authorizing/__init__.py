"""The rights of the callers: who may command, and the parts of requests that a caller may ask for."""
