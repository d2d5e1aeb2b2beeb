"""PreferredElection: the time of an election, the partitions to request, and the result for each."""
