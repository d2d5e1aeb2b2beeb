"""Giving the controller's role to somebody else: who has it, what is in the way, and the move itself."""
