"""PartitionReassignment: the request for the move, its progress, and its cancellation."""
