"""A cluster without ZooKeeper as the log of its controllers' quorum says it: `__cluster_metadata`, partition 0.

`batches` takes bytes apart and `records` reads what is in them; `events` puts together what belongs together, `image`
applies it, and `following` asks the quorum's leader for more of it, as an observer that counts as no replica. `undecided`
has what came and may be given up yet, `looking` is the `Looker` made of all these, and `log_clock` has the log's time.
"""
