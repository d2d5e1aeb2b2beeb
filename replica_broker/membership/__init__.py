"""Being a member of the cluster: joining it, staying in it, asking its controller, and leaving it in good order."""
