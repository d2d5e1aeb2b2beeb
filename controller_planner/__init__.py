"""Plans that place the replicas and leaders of a cluster: values in, values out, nothing else."""
