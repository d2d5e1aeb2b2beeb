package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/IBM/sarama"
)

const leaderRate = "leader.replication.throttled.rate"

type saramaClient struct {
	config *sarama.Config
	client sarama.Client
}

func openSarama(address string) (client, error) {
	config := sarama.NewConfig()
	config.Version = sarama.V2_8_0_0
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Retry.Max = 100
	opened, err := sarama.NewClient([]string{address}, config)
	return &saramaClient{config: config, client: opened}, err
}

func (c *saramaClient) nodes() ([]int32, error) {
	var ids []int32
	for _, broker := range c.client.Brokers() {
		ids = append(ids, broker.ID())
	}
	slices.Sort(ids)
	return ids, nil
}

func (c *saramaClient) walk(done *report) {
	for _, broker := range c.client.Brokers() {
		_ = broker.Open(c.config)
		c.walkNode(done, broker)
	}
}

func (c *saramaClient) walkNode(done *report, broker *sarama.Broker) {
	id := broker.ID()
	name := strconv.Itoa(int(id))
	rate := "1000000"
	c.describe(done, broker, "DescribeConfigs", sarama.BrokerResource, name)
	c.describe(done, broker, "DescribeConfigs of loggers", sarama.BrokerLoggerResource, name)
	set := map[string]sarama.IncrementalAlterConfigsEntry{
		leaderRate: {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &rate},
	}
	altered, err := broker.IncrementalAlterConfigs(&sarama.IncrementalAlterConfigsRequest{
		Resources: []*sarama.IncrementalAlterConfigsResource{
			{Type: sarama.BrokerResource, Name: name, ConfigEntries: set},
		},
	})
	if err == nil {
		err = firstError(altered.Resources)
	}
	done.add(id, "IncrementalAlterConfigs", err)
	c.replace(done, broker, "AlterConfigs", name, map[string]*string{leaderRate: &rate})
	c.replace(done, broker, "AlterConfigs to nothing", name, nil)
	_, err = broker.DescribeLogDirs(&sarama.DescribeLogDirsRequest{Version: 1})
	done.add(id, "DescribeLogDirs", err)
	_, err = broker.ApiVersions(&sarama.ApiVersionsRequest{})
	done.add(id, "ApiVersions", err)
	_, err = broker.GetMetadata(&sarama.MetadataRequest{Version: 5})
	done.add(id, "Metadata", err)
	_, err = broker.ListGroups(&sarama.ListGroupsRequest{})
	done.add(id, "ListGroups", err)
	_, err = broker.FindCoordinator(&sarama.FindCoordinatorRequest{CoordinatorKey: "any"})
	done.add(id, "FindCoordinator", err)
	_, err = broker.DescribeGroups(&sarama.DescribeGroupsRequest{Groups: []string{"any"}})
	done.add(id, "DescribeGroups", err)
	_, err = broker.GetAvailableOffsets(&sarama.OffsetRequest{})
	done.add(id, "ListOffsets", err)
}

func (c *saramaClient) describe(
	done *report, broker *sarama.Broker, what string, kind sarama.ConfigResourceType, name string,
) {
	resource := &sarama.ConfigResource{Type: kind, Name: name}
	answer, err := broker.DescribeConfigs(&sarama.DescribeConfigsRequest{
		Version: 1, Resources: []*sarama.ConfigResource{resource},
	})
	if err == nil && answer.Resources[0].ErrorCode != 0 {
		err = fmt.Errorf("%d: %s", answer.Resources[0].ErrorCode, answer.Resources[0].ErrorMsg)
	}
	done.add(broker.ID(), what, err)
}

func (c *saramaClient) replace(
	done *report, broker *sarama.Broker, what string, name string, entries map[string]*string,
) {
	answer, err := broker.AlterConfigs(&sarama.AlterConfigsRequest{
		Resources: []*sarama.AlterConfigsResource{{Type: sarama.BrokerResource, Name: name, ConfigEntries: entries}},
	})
	if err == nil {
		err = firstError(answer.Resources)
	}
	done.add(broker.ID(), what, err)
}

func firstError(results []*sarama.AlterConfigsResourceResponse) error {
	for _, result := range results {
		if result.ErrorCode != 0 {
			return fmt.Errorf("%d: %s", result.ErrorCode, result.ErrorMsg)
		}
	}
	return nil
}

// administer runs a step of sarama's ClusterAdmin, which cannot be opened without a controller.
func (c *saramaClient) administer(done *report, what string, ask func(sarama.ClusterAdmin) error) {
	admin, err := sarama.NewClusterAdminFromClient(c.client)
	if err == nil {
		err = ask(admin)
	}
	done.add(-1, what, err)
}

func (c *saramaClient) createTopic(done *report, topic string, replicas int) {
	detail := &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: int16(replicas)}
	c.administer(done, "CreateTopics", func(admin sarama.ClusterAdmin) error {
		return admin.CreateTopic(topic, detail, false)
	})
}

func (c *saramaClient) create(done *report, topic string) {
	c.createTopic(done, topic, min(len(done.Nodes), 3))
}

// spread raises the replication factor of a topic to the number of nodes, as the Terraform provider does.
func (c *saramaClient) spread(done *report, topic string) {
	c.createTopic(done, topic, 1)
	c.administer(done, "AlterPartitionReassignments", func(admin sarama.ClusterAdmin) error {
		return admin.AlterPartitionReassignments(topic, [][]int32{done.Nodes})
	})
	c.write(done, topic)
}

func (c *saramaClient) write(done *report, topic string) {
	producer, err := sarama.NewSyncProducerFromClient(c.client)
	if err == nil {
		_, _, err = producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("x")})
	}
	done.add(-1, "Produce", err)
}
