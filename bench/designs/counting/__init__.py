"""The counters: ZooKeeper's log and statistics, and the requests that our servers receive."""
