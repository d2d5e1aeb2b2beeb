"""PreferredElection: when to ask for an election, of which partitions, and what became of each."""
