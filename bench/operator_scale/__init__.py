"""The operator with thousands of topics: the shipped process, a real API server, a real ZooKeeper.

`surroundings` starts and fills the servers around the operator, `paper_controller` plays the brokers' controller,
`watching` sees the objects as a user with a watch does, `counters` reads the numbers of writes from the servers,
`phases` are the measurements.
"""
