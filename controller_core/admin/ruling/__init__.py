"""Topic rules applied to clients' requests."""
