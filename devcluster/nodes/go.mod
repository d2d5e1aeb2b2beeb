module kontroller.dev/devcluster/nodes

go 1.24

require (
	github.com/IBM/sarama v1.45.2
	github.com/twmb/franz-go v1.18.1
	github.com/twmb/franz-go/pkg/kadm v1.15.0
	github.com/twmb/franz-go/pkg/kmsg v1.9.0
)
