"""What tests wait for: the health of a cluster that they share, and what all of them ask of one."""
