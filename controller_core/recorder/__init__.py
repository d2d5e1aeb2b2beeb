"""Writes the journal of a cluster whose controller is somebody else: Kafka's own, or a Kontroller without a journal.

It only looks on. `looker` says what it needs to know of a cluster, which `znodes` reads and watches in ZooKeeper, and
`metadata_log` finds in the log of a quorum of controllers, or `polled` by asking brokers. `recorder` compares what it sees
with what it saw and records the differences, with the causes that `controller_core.journal.inference` guesses. `directory`
makes sure that the journal is one that it may go on with, from where `event_numbers` say. Nothing here writes to a cluster.
"""
