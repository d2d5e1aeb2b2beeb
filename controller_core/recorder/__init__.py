"""Writes the journal of a cluster whose controller is somebody else: Kafka's own, or a Kontroller without a journal.

It only looks on. `looking` reads and watches ZooKeeper, `recorder` compares what it sees with what it saw and records the
differences, with the causes that `controller_core.journal.inference` guesses, and `directory` makes sure that the journal
is one that it may go on with. Nothing here writes to ZooKeeper.
"""
