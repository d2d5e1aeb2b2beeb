"""The main job, shown on real parts in about a minute: `make demo`."""
