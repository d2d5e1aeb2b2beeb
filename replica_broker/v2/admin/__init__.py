"""What the admin commands of design v2 write and wait for."""
