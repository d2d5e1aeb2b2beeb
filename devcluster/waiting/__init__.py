"""The waits of tests: for the health of a shared cluster, for conditions that many tests ask for, and under load."""
