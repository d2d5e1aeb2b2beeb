"""Topics: which names, configurations and placements of replicas they can have."""
