"""What seed 003's design (v2, brokers that race) costs beside seed 004's (v3, a controller), counted at the servers.

The same Python brokers, in the same machine's one ZooKeeper, once for each design: topics are created, a broker is killed,
and comes back. ZooKeeper counts what it was asked and what it sent, its transaction log says every write with its time and
its session, and each server of ours counts the requests that it receives. Nothing is asked of the servers while a scenario
runs that would not be asked otherwise: what the cluster has come to is read off the log.
"""
