"""The admin commands of design v2."""
