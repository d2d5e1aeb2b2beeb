import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData.ReassignablePartition;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData.ReassignableTopic;
import org.apache.kafka.common.message.AlterPartitionReassignmentsResponseData;
import org.apache.kafka.common.message.ControlledShutdownRequestData;
import org.apache.kafka.common.message.ControlledShutdownResponseData;
import org.apache.kafka.common.message.LeaderAndIsrRequestData;
import org.apache.kafka.common.message.LeaderAndIsrRequestData.LeaderAndIsrPartitionState;
import org.apache.kafka.common.message.LeaderAndIsrRequestData.LeaderAndIsrTopicState;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.RequestUtils;
import org.apache.zookeeper.ZooKeeper;

/**
 * Stub brokers in one JVM: `Fleet ZOOKEEPER ID=PORT...`. Commands come as JSON lines on stdin, `{"id": n, "do": what, ...}`,
 * each is answered by one line on stdout, `{"id": n, ...}` or `{"id": n, "error": why}`. Ends when stdin does.
 */
public final class Fleet {
    static final ObjectMapper JSON = new ObjectMapper();
    private static final int CONTROLLER_TIMEOUT_MS = 300_000;
    private static final int WARM_UP_ROUNDS = 300;

    private final Clerk clerk = new Clerk();
    private final Map<Integer, StubBroker> brokers = clerk.brokers;
    private final ZooKeeper zookeeper;
    private Probe probe;

    private Fleet(String connect, List<String> ports) throws Exception {
        zookeeper = StubBroker.connected(connect);
        for (String port : ports) {
            int id = Integer.parseInt(port.split("=")[0]);
            brokers.put(id, new StubBroker(id, Integer.parseInt(port.split("=")[1]), connect, clerk));
        }
    }

    public static void main(String[] arguments) throws Exception {
        warmUp();
        Fleet fleet = new Fleet(arguments[0], List.of(arguments).subList(1, arguments.length));
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            JsonNode command = JSON.readTree(line);
            thread("command", () -> fleet.answer(command));
        }
        System.exit(0);
    }

    private void answer(JsonNode command) {
        ObjectNode answer;
        try {
            answer = done(command);
        } catch (Exception error) {
            error.printStackTrace();
            answer = JSON.createObjectNode().put("error", error.toString());
        }
        answer.put("id", command.get("id").asInt());
        synchronized (System.out) {
            System.out.println(answer);
            System.out.flush();
        }
    }

    private ObjectNode done(JsonNode command) throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        switch (command.get("do").asText()) {
            case "start" -> {
                for (StubBroker broker : brokers.values()) {
                    broker.start();
                }
            }
            case "come_back" -> answer.put("at_us", named(command).start());
            case "kill" -> {
                answer.put("at_us", named(command).kill());
                clerk.left(named(command).id);
            }
            case "shut_down" -> shutDown(named(command), answer);
            case "reassign" -> reassign(command.get("partitions"), answer);
            case "catch_up" -> clerk.setCatchUp(command.get("on").asBoolean());
            case "forget" -> clerk.forget();
            case "pulse" -> answer.put("last_us", clerk.lastReceivedUs());
            case "write" -> answer.put("at_us", new Znodes(zookeeper).create(command.get("file").asText(), command.get("at_once").asInt()));
            case "watch_gone" -> answer.put("at_us", new Znodes(zookeeper).childrenGone(command.get("path").asText()));
            case "look" -> answer = clerk.look();
            case "compare" -> answer = new Comparison(zookeeper, clerk, live(command.get("leaving"))).result();
            case "probe" -> probe = new Probe(
                    zookeeper, brokers.get(command.get("leader").asInt()), controller(), command.get("interval_ms").asInt());
            case "probe_stop" -> answer = probe.stop();
            default -> throw new IllegalArgumentException("no such command");
        }
        return answer;
    }

    private StubBroker named(JsonNode command) {
        return brokers.get(command.get("broker").asInt());
    }

    /** The registered brokers but for one that is shut down: its replicas are stopped, it is sent no state of theirs. */
    private List<Integer> live(JsonNode leaving) {
        return brokers.values().stream()
                .filter(broker -> broker.epoch() != -1 && (leaving.isNull() || broker.id != leaving.asInt()))
                .map(broker -> broker.id)
                .toList();
    }

    private InetSocketAddress controller() {
        clerk.drain();
        return clerk.controller();
    }

    /** As a broker that is asked to stop: asks until it leads nothing that others could lead. */
    private void shutDown(StubBroker broker, ObjectNode answer) throws Exception {
        short version = 3;
        var request = new ControlledShutdownRequestData().setBrokerId(broker.id).setBrokerEpoch(broker.epoch());
        int tries = 0;
        try (Wire wire = Wire.connect(controller(), CONTROLLER_TIMEOUT_MS)) {
            answer.put("at_us", Wire.nowUs());
            while (true) {
                tries++;
                var body = new ByteBufferAccessor(wire.ask(ApiKeys.CONTROLLED_SHUTDOWN, version, "fleet", request));
                var answered = new ControlledShutdownResponseData(body, version);
                if (answered.errorCode() == 0 && answered.remainingPartitions().isEmpty()) {
                    break;
                }
                pause(100);
            }
        }
        answer.put("answered_us", Wire.nowUs());
        answer.put("tries", tries);
    }

    /** Asks the controller for a reassignment, as Kafka's tool does: `[[topic, partition, [replica, ...]], ...]`. */
    private void reassign(JsonNode partitions, ObjectNode answer) throws Exception {
        short version = 0;
        var topics = new TreeMap<String, ReassignableTopic>();
        for (JsonNode one : partitions) {
            List<Integer> replicas = new ArrayList<>();
            one.get(2).forEach(replica -> replicas.add(replica.asInt()));
            topics.computeIfAbsent(one.get(0).asText(), name -> new ReassignableTopic().setName(name))
                    .partitions()
                    .add(new ReassignablePartition().setPartitionIndex(one.get(1).asInt()).setReplicas(replicas));
        }
        var request = new AlterPartitionReassignmentsRequestData()
                .setTimeoutMs(CONTROLLER_TIMEOUT_MS)
                .setTopics(new ArrayList<>(topics.values()));
        try (Wire wire = Wire.connect(controller(), CONTROLLER_TIMEOUT_MS)) {
            answer.put("at_us", Wire.nowUs());
            var body = new ByteBufferAccessor(wire.ask(ApiKeys.ALTER_PARTITION_REASSIGNMENTS, version, "fleet", request));
            var answered = new AlterPartitionReassignmentsResponseData(body, version);
            int refused = 0;
            for (var topic : answered.responses()) {
                for (var partition : topic.partitions()) {
                    refused += partition.errorCode() == 0 ? 0 : 1;
                }
            }
            answer.put("error_code", answered.errorCode());
            answer.put("refused", refused);
        }
        answer.put("answered_us", Wire.nowUs());
    }

    /** The compiler is done with what answers requests before the first of them is measured. */
    private static void warmUp() {
        var request = new LeaderAndIsrRequestData();
        for (int topic = 0; topic < 20; topic++) {
            var states = new ArrayList<LeaderAndIsrPartitionState>();
            for (int partition = 0; partition < 50; partition++) {
                states.add(new LeaderAndIsrPartitionState()
                        .setPartitionIndex(partition)
                        .setIsr(List.of(1, 2, 3))
                        .setReplicas(List.of(1, 2, 3)));
            }
            request.topicStates().add(new LeaderAndIsrTopicState()
                    .setTopicName("warm-up-" + topic)
                    .setTopicId(Uuid.randomUuid())
                    .setPartitionStates(states));
        }
        var header = new RequestHeader(ApiKeys.LEADER_AND_ISR, (short) 7, "warm-up", 1);
        ByteBuffer frame = RequestUtils.serialize(header.data(), header.headerVersion(), request, header.apiVersion());
        for (int round = 0; round < WARM_UP_ROUNDS; round++) {
            var answer = StubBroker.answer(RequestHeader.parse(frame.duplicate()), frame.array());
            RequestUtils.serialize(header.toResponseHeader().data(), (short) 1, answer, header.apiVersion());
        }
    }

    static Thread thread(String name, Runnable work) {
        Thread thread = daemon(work);
        thread.setName(name);
        thread.start();
        return thread;
    }

    static Thread daemon(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        return thread;
    }

    static void pause(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
