"""The command `kontroller-broker`: runs a reference broker, and administers topics of design v2."""
