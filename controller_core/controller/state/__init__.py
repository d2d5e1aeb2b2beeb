"""The cluster state of the present controller, in memory, and lookups over all of it."""
