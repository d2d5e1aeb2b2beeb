"""The client of a Kafka cluster with any controller: the members of a cluster, calls to them, and a function for each
operation.

The operator, the recorder, the commands and the checks are above it. Scripts use it as `kontroller.AdminClient`."""
