"""PartitionReassignment: when to ask for the move, how far it is, and how it is cancelled."""
