"""A cluster without ZooKeeper, from the log of its controllers' quorum: `__cluster_metadata`, partition 0.

`batches` splits bytes into batches, `records` parses records, `events` groups them, `image` applies them, `following`
fetches more from the quorum's leader, as an observer that does not count as a replica. `undecided` holds batches that
may still be truncated, `looking` is the `Looker` made of all these, and `log_clock` has the log's time."""
