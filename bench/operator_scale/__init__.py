"""What the operator makes of thousands of topics: the shipped process, a real API server, a real ZooKeeper.

`surroundings` starts and fills what is around the operator, `paper_controller` plays the brokers' controller, `watching`
sees the objects as a user with a watch does, `counters` asks the servers what was written, `phases` are what is measured.
"""
