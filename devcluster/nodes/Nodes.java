import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.DescribeProducersOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.config.ConfigResource;

/**
 * Does what tools in Java do with the nodes of a cluster. See main.go for the commands and the output.
 *
 * java -cp LIBS Nodes.java walk|create HOST:PORT [TOPIC]
 */
public class Nodes {
    private static final String LEADER_RATE = "leader.replication.throttled.rate";
    private static final List<String> STEPS = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", arguments[1], "default.api.timeout.ms", 120000);
        try (Admin admin = Admin.create(settings)) {
            List<Integer> nodes =
                admin.describeCluster().nodes().get().stream().map(Node::id).sorted().collect(Collectors.toList());
            if (arguments[0].equals("walk")) {
                walk(admin, nodes);
            } else {
                NewTopic topic = new NewTopic(arguments[2], 1, (short) Math.min(nodes.size(), 3));
                step(-1, "CreateTopics", admin.createTopics(List.of(topic), new CreateTopicsOptions().timeoutMs(20000)).all());
            }
            System.out.println("{\"nodes\": " + nodes + ", \"steps\": [" + String.join(", ", STEPS) + "]}");
        }
    }

    private static void walk(Admin admin, List<Integer> nodes) throws Exception {
        step(-1, "ListConsumerGroups", admin.listConsumerGroups().all());
        step(-1, "ListTransactions", admin.listTransactions().all());
        step(-1, "DescribeFeatures", admin.describeFeatures().featureMetadata());
        step(-1, "DescribeClientQuotas", admin.describeClientQuotas(
            org.apache.kafka.common.quota.ClientQuotaFilter.all()).entities());
        step(-1, "DescribeUserScramCredentials", admin.describeUserScramCredentials().all());
        for (int id : nodes) {
            walkNode(admin, id);
        }
    }

    @SuppressWarnings("deprecation")
    private static void walkNode(Admin admin, int id) throws Exception {
        ConfigResource node = new ConfigResource(ConfigResource.Type.BROKER, "" + id);
        ConfigResource loggers = new ConfigResource(ConfigResource.Type.BROKER_LOGGER, "" + id);
        ConfigEntry rate = new ConfigEntry(LEADER_RATE, "1000000");
        Collection<AlterConfigOp> set = List.of(new AlterConfigOp(rate, AlterConfigOp.OpType.SET));
        Collection<AlterConfigOp> delete = List.of(new AlterConfigOp(rate, AlterConfigOp.OpType.DELETE));
        step(id, "DescribeConfigs", admin.describeConfigs(List.of(node)).all());
        step(id, "DescribeConfigs of loggers", admin.describeConfigs(List.of(loggers)).all());
        step(id, "IncrementalAlterConfigs", admin.incrementalAlterConfigs(Map.of(node, set)).all());
        step(id, "IncrementalAlterConfigs back", admin.incrementalAlterConfigs(Map.of(node, delete)).all());
        step(id, "AlterConfigs", admin.alterConfigs(Map.of(node, new Config(List.of(rate)))).all());
        step(id, "AlterConfigs to nothing", admin.alterConfigs(Map.of(node, new Config(List.of()))).all());
        step(id, "DescribeLogDirs", admin.describeLogDirs(List.of(id)).allDescriptions());
        TopicPartitionReplica replica = new TopicPartitionReplica("walked", 0, id);
        step(id, "DescribeReplicaLogDirs", admin.describeReplicaLogDirs(List.of(replica)).all());
        step(id, "AlterReplicaLogDirs", admin.alterReplicaLogDirs(Map.of(replica, "/nowhere")).all());
        step(id, "DescribeProducers", admin.describeProducers(
            List.of(new TopicPartition("walked", 0)), new DescribeProducersOptions().brokerId(id)).all());
    }

    private static void step(int node, String what, KafkaFuture<?> answer) throws InterruptedException {
        String error = "";
        try {
            answer.get();
        } catch (java.util.concurrent.ExecutionException failed) {
            error = failed.getCause().toString();
        }
        String text = error.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", " ");
        STEPS.add(String.format("{\"node\": %d, \"what\": \"%s\", \"error\": \"%s\"}", node, what, text));
    }
}
