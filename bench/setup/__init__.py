"""What is measured on: the data, the servers of Java, the machine and its disk."""
