"""The procedures of seed 003's broker, over the replicas that all designs share."""
