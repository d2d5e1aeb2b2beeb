"""Events and their queue, the clock, and the watches and reads that become events."""
