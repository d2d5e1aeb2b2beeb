"""The waits of tests: for the health of a cluster that they share, for what all ask of one, and for load that loses nothing."""
