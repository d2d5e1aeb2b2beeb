"""The waits of tests: for the health of a shared cluster, for common conditions, and under load."""
