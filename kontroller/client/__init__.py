"""A client of any Kafka cluster for those who administer it, whoever its controller is: `admin_client.AdminClient`."""
