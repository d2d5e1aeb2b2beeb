"""What is counted, and where: ZooKeeper's log and counters, and the requests that servers of ours receive."""
