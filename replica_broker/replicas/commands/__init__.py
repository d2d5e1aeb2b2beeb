"""What the controller commands: to lead, to follow, to stop, to delete."""
