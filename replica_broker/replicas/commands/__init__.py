"""The controller's commands to replicas: lead, follow, stop, delete."""
