"""The face of the client library (`controller_core.client`) for scripts and commands."""
