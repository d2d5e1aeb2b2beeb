"""Writes the journal of a cluster with another controller: Kafka's own, or a Kontroller without a journal.

The recorder only observes; nothing here writes to a cluster. `looker` is the interface to a source: `znodes` watches
ZooKeeper, `metadata_log` follows the log of a quorum of controllers, `polled` polls brokers. `recorder` records the
differences between two states, with the causes that `controller_core.journal.inference` guesses. `directory` checks
that it may continue a journal, and `event_numbers` tells from where."""
