"""The audit: who asked to change what, from where, and how it ended. See docs/security.md."""
