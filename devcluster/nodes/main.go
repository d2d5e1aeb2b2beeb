// Command nodes does what tools in Go do with the nodes of a cluster: count them, ask each, and place replicas on them.
//
//	nodes sarama|franz count|walk|create|spread HOST:PORT [TOPIC]
//
// It writes one JSON object to standard output. Errors are part of it; the exit status is not 0 if the nodes cannot be
// listed at all.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
)

// report has what a client learned. Steps are in the order in which they were done.
type report struct {
	Nodes []int32 `json:"nodes"`
	Steps []step  `json:"steps"`
}

// step is one question to a node, or to the cluster if Node is -1. Error is empty if it was answered without one.
type step struct {
	Node  int32  `json:"node"`
	What  string `json:"what"`
	Error string `json:"error"`
}

func (r *report) add(node int32, what string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	r.Steps = append(r.Steps, step{Node: node, What: what, Error: text})
}

// client is one library. Every function adds its steps to the report.
type client interface {
	// nodes lists the nodes in the metadata, in ascending order.
	nodes() ([]int32, error)
	// walk asks every node everything that the library can ask a node.
	walk(done *report)
	// create creates a topic with one partition and as many replicas as there are nodes, at most three.
	create(done *report, topic string)
	// spread creates a topic with one partition for each node, moves one to each node, and writes and reads all.
	spread(done *report, topic string)
}

func main() {
	if len(os.Args) < 4 {
		log.Fatal("usage: nodes sarama|franz count|walk|create|spread HOST:PORT [TOPIC]")
	}
	library, command, address := os.Args[1], os.Args[2], os.Args[3]
	opened, err := open(library, address)
	if err != nil {
		log.Fatal(err)
	}
	done := report{Steps: []step{}}
	if done.Nodes, err = opened.nodes(); err != nil {
		log.Fatal(err)
	}
	switch command {
	case "count":
	case "walk":
		opened.walk(&done)
	case "create":
		opened.create(&done, os.Args[4])
	case "spread":
		opened.spread(&done, os.Args[4])
	default:
		log.Fatalf("there is no command %q", command)
	}
	if err := json.NewEncoder(os.Stdout).Encode(done); err != nil {
		log.Fatal(err)
	}
}

func open(library, address string) (client, error) {
	switch library {
	case "sarama":
		return openSarama(address)
	case "franz":
		return openFranz(address)
	}
	return nil, fmt.Errorf("there is no library %q", library)
}
