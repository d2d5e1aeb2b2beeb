"""Records by polling the brokers of a cluster without ZooKeeper, if the recorder may not read the controllers' log.

`looking` is the looker, `states` turns answers into states."""
