"""Polls the brokers of a cluster without ZooKeeper, because nothing can be watched there.

`questions` sends requests and `answers` reads responses. `catching_up` waits for a broker that lags, `agreement` finds
out what moves, `configurations` and `self_descriptions` poll a part at a time. `looking` is one poll, `known_cluster`
its result, `pace` the time of the next poll, and `paced_looks` all of this together."""
