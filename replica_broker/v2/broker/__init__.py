"""What a broker of design v2 does: the seed's procedures, over the replicas that every broker of ours has."""
