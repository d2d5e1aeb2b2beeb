"""What replicas of a broker of our own are kept on and fetched over, without disks and sockets."""
