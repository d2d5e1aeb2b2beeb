"""What the controller says of the cluster and of itself, as a broker would."""
