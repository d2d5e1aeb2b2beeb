"""What secure connections are made of, to ZooKeeper or to Kafka: files of properties, certificates, logins."""
