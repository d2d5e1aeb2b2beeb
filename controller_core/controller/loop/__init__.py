"""What happens, in order: events, their queue, the clock, watches and reads that become events."""
