"""Log directories of brokers (DescribeLogDirs): their disks, the sizes of replicas, and the bytes left of a move."""
