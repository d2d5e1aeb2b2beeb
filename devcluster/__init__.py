"""ZooKeeper, Kafka and a Kubernetes API server on this machine, for the demo, the tests and the benchmarks.

Everything is an unmodified release, runs as a plain process on loopback, and comes from a cache outside the
repository that the first use fills (Maven for the jars, Go for the Kubernetes binaries). Every server is a
context manager: leaving it ends its processes, and nothing outlives the Python process that started it. Linux
only.

    with run_folder("try") as folder, ZooKeeper(folder) as zookeeper:
        with KafkaCluster(folder, zookeeper, brokers=3) as kafka:
            print(kafka.bootstrap_servers)
"""
