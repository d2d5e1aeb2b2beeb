package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const patience = 30 * time.Second

type franzClient struct {
	client *kgo.Client
	admin  *kadm.Client
}

// notAsked are the requests that a walk leaves out: those of controllers and brokers, and logins.
var notAsked = []int16{4, 5, 6, 7, 17, 27, 36, 56, 67}

func openFranz(address string) (client, error) {
	opened, err := kgo.NewClient(
		kgo.SeedBrokers(address),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RetryTimeout(10*time.Second),
		kgo.RecordDeliveryTimeout(patience),
	)
	if err != nil {
		return nil, err
	}
	return &franzClient{client: opened, admin: kadm.NewClient(opened)}, nil
}

func within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

func (c *franzClient) nodes() ([]int32, error) {
	ctx, cancel := within()
	defer cancel()
	brokers, err := c.admin.ListBrokers(ctx)
	ids := brokers.NodeIDs()
	slices.Sort(ids)
	return ids, err
}

// walk sends every API that a node offers to that node, empty, and adds a step for each.
func (c *franzClient) walk(done *report) {
	for _, id := range done.Nodes {
		ctx, cancel := within()
		response, err := c.client.Broker(int(id)).Request(ctx, kmsg.NewPtrApiVersionsRequest())
		cancel()
		done.add(id, "ApiVersions", err)
		if err != nil {
			continue
		}
		for _, api := range response.(*kmsg.ApiVersionsResponse).ApiKeys {
			c.ask(done, id, api.ApiKey)
		}
	}
}

func (c *franzClient) ask(done *report, id int32, key int16) {
	request := kmsg.RequestForKey(key)
	if request == nil || slices.Contains(notAsked, key) {
		return
	}
	ctx, cancel := within()
	defer cancel()
	_, err := c.client.Broker(int(id)).Request(ctx, request)
	done.add(id, kmsg.NameForKey(key), err)
}

func (c *franzClient) create(done *report, topic string) {
	ctx, cancel := within()
	defer cancel()
	created, err := c.admin.CreateTopic(ctx, 1, int16(min(len(done.Nodes), 3)), nil, topic)
	if err == nil && created.ErrMessage != "" {
		err = fmt.Errorf("%w: %s", created.Err, created.ErrMessage)
	}
	done.add(-1, "CreateTopics", err)
}

// spread makes each node lead one partition and writes to all, as kminion's end-to-end probe does.
func (c *franzClient) spread(done *report, topic string) {
	ctx, cancel := within()
	_, err := c.admin.CreateTopic(ctx, int32(len(done.Nodes)), 1, nil, topic)
	cancel()
	done.add(-1, "CreateTopics", err)
	var wanted kadm.AlterPartitionAssignmentsReq
	for partition, id := range done.Nodes {
		wanted.Assign(topic, int32(partition), []int32{id})
	}
	ctx, cancel = within()
	answered, err := c.admin.AlterPartitionAssignments(ctx, wanted)
	cancel()
	done.add(-1, "AlterPartitionReassignments", err)
	for _, each := range answered.Sorted() {
		err := each.Err
		if err != nil {
			err = fmt.Errorf("%w: %s", each.Err, each.ErrMessage)
		}
		done.add(done.Nodes[each.Partition], "move", err)
	}
	ctx, cancel = within()
	defer cancel()
	for partition, id := range done.Nodes {
		record := &kgo.Record{Topic: topic, Partition: int32(partition), Value: []byte("x")}
		done.add(id, "Produce", c.client.ProduceSync(ctx, record).FirstErr())
	}
}
