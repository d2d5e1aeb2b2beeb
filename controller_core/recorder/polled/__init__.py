"""What the brokers of a cluster without ZooKeeper say when they are asked again and again: for a recorder that may not read
the log of their controllers. `looking` is the looker, `states` what it makes of what it hears.
"""
