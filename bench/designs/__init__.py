"""The costs of seed 003's design (v2, brokers that race) and of seed 004's (v3, a controller), counted at the servers.

The same Python brokers run with the same machine's ZooKeeper, once for each design: topics are created, a broker is
killed, and comes back. ZooKeeper counts its requests and notifications, its transaction log has every write with its
time and session, and each of our servers counts its requests. The measurement adds no requests during a scenario: it
reads the cluster's state from the log.
"""
