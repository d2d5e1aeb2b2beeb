"""Whether a broker can be stopped, and whether it is back, judged from a picture of the cluster."""
