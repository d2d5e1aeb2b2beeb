"""Answers the API server whether an object may be as somebody wants it: a validating webhook, for who installs one."""
