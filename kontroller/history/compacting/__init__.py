"""What a history keeps no more: entries of snapshots that are proven to say nothing new, and what is too old."""
