"""What must not wait for a report: alarms over the stream of events, by event time."""
