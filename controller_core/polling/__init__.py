"""Asks the brokers of a cluster without ZooKeeper what there is, again and again: nothing can be watched there.

`questions` asks, `answers` reads, `catching_up` waits for a broker that is behind, `agreement` says what moves,
`configurations` and `self_descriptions` ask for some at a time, `looking` is one look, `known_cluster` what was heard,
`pace` says when to look again, and `paced_looks` is all of it for whoever needs it.
"""
