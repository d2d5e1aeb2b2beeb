"""The replicas on this broker: what leads, what follows, who is in sync, and what is committed (seed 004, C and G)."""
