"""The `kontroller-broker` command: runs a reference broker and administers the topics of design v2."""
