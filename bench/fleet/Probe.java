import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionRequestData.BrokerState;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.message.MetadataRequestData;
import org.apache.kafka.common.message.MetadataRequestData.MetadataRequestTopic;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/**
 * Asks the controller at a fixed rate while it is busy: an AlterPartition that really changes an ISR, to and fro, and
 * Metadata of one topic.
 *
 * <p>A latency runs from the moment that a request was due, not from when it could be sent, until it was accepted: what
 * waits behind a slow answer is slow as well.
 */
final class Probe {
    private static final short METADATA_VERSION = 12;
    private static final int TIMEOUT_MS = 120_000;
    private static final int BACKOFF_MS = 10;
    private static final int[][] ISRS = {{3, 4}, {3, 4, 5}};

    private final ZooKeeper zookeeper;
    private final StubBroker leader;
    private final InetSocketAddress controller;
    private final int intervalMs;
    private final Sampler alter = new Sampler();
    private final Sampler metadata = new Sampler();
    private volatile boolean isOver;

    private Uuid topicId;
    private int leaderEpoch;
    private int version;
    private int turn;

    /** What one kind of request came to: latencies of the accepted, and why others were refused. */
    private static final class Sampler {
        final List<Long> latenciesUs = new ArrayList<>();
        final Map<String, Integer> refusals = new TreeMap<>();
        Wire wire;
        Thread thread;
    }

    private interface Attempt {
        /** True where the request was accepted. */
        boolean accepted(Wire wire) throws Exception;
    }

    Probe(ZooKeeper zookeeper, StubBroker leader, InetSocketAddress controller, int intervalMs) throws Exception {
        this.zookeeper = zookeeper;
        this.leader = leader;
        this.controller = controller;
        this.intervalMs = intervalMs;
        readState();
        alter.thread = Fleet.thread("probe-alter", () -> run(alter, this::alter));
        metadata.thread = Fleet.thread("probe-metadata", () -> run(metadata, this::metadata));
    }

    /** Ends it; the latencies of all requests that were due, in microseconds. */
    ObjectNode stop() throws InterruptedException {
        isOver = true;
        ObjectNode answer = Fleet.JSON.createObjectNode();
        report(alter, answer.putObject("alter_partition"));
        report(metadata, answer.putObject("metadata"));
        return answer;
    }

    private static void report(Sampler sampler, ObjectNode answer) throws InterruptedException {
        sampler.thread.join();
        ArrayNode latencies = answer.putArray("latencies_us");
        sampler.latenciesUs.forEach(latencies::add);
        answer.set("refusals", Fleet.JSON.valueToTree(sampler.refusals));
    }

    private void run(Sampler sampler, Attempt attempt) {
        long dueUs = Wire.nowUs();
        while (!isOver) {
            long waitUs = dueUs - Wire.nowUs();
            if (waitUs > 0) {
                Fleet.pause(Math.max(1, waitUs / 1000));
            }
            boolean isAccepted = isAccepted(sampler, attempt);
            while (!isAccepted && !isOver) {
                Fleet.pause(BACKOFF_MS);
                isAccepted = isAccepted(sampler, attempt);
            }
            if (isAccepted) {
                sampler.latenciesUs.add(Wire.nowUs() - dueUs);
            }
            dueUs += intervalMs * 1000L;
        }
        if (sampler.wire != null) {
            sampler.wire.close();
        }
    }

    private boolean isAccepted(Sampler sampler, Attempt attempt) {
        try {
            if (sampler.wire == null) {
                sampler.wire = Wire.connect(controller, TIMEOUT_MS);
            }
            return attempt.accepted(sampler.wire);
        } catch (Exception error) {
            sampler.refusals.merge(error.toString(), 1, Integer::sum);
            if (sampler.wire != null) {
                sampler.wire.close();
                sampler.wire = null;
            }
            return false;
        }
    }

    private boolean alter(Wire wire) throws Exception {
        List<BrokerState> isr = new ArrayList<>();
        for (int member : ISRS[turn]) {
            isr.add(new BrokerState().setBrokerId(member));
        }
        var partition = new AlterPartitionRequestData.PartitionData()
                .setPartitionIndex(0)
                .setLeaderEpoch(leaderEpoch)
                .setPartitionEpoch(version)
                .setNewIsrWithEpochs(isr);
        var topic = new AlterPartitionRequestData.TopicData().setTopicId(topicId).setPartitions(List.of(partition));
        var request = new AlterPartitionRequestData()
                .setBrokerId(leader.id)
                .setBrokerEpoch(leader.epoch())
                .setTopics(List.of(topic));
        var answer = new AlterPartitionResponseData(
                new ByteBufferAccessor(wire.ask(ApiKeys.ALTER_PARTITION, CatchUp.VERSION, "probe", request)), CatchUp.VERSION);
        int error = answer.errorCode() != 0
                ? answer.errorCode()
                : answer.topics().get(0).partitions().get(0).errorCode();
        if (error != 0) {
            alter.refusals.merge(Errors.forCode((short) error).name(), 1, Integer::sum);
            readState();
            return false;
        }
        version = answer.topics().get(0).partitions().get(0).partitionEpoch();
        turn = 1 - turn;
        return true;
    }

    private boolean metadata(Wire wire) throws IOException {
        var topic = new MetadataRequestTopic().setName(Clerk.PROBED_TOPIC);
        var request = new MetadataRequestData().setTopics(List.of(topic)).setAllowAutoTopicCreation(false);
        var answer = new MetadataResponseData(
                new ByteBufferAccessor(wire.ask(ApiKeys.METADATA, METADATA_VERSION, "probe", request)), METADATA_VERSION);
        int error = answer.topics().iterator().next().errorCode();
        if (error != 0) {
            metadata.refusals.merge(Errors.forCode((short) error).name(), 1, Integer::sum);
        }
        return error == 0;
    }

    private void readState() throws Exception {
        String path = "/brokers/topics/" + Clerk.PROBED_TOPIC;
        topicId = Uuid.fromString(Fleet.JSON.readTree(zookeeper.getData(path, false, null)).get("topic_id").asText());
        Stat stat = new Stat();
        var state = Fleet.JSON.readTree(zookeeper.getData(path + "/partitions/0/state", false, stat));
        leaderEpoch = state.get("leader_epoch").asInt();
        version = stat.getVersion();
        turn = state.get("isr").size() == ISRS[0].length ? 1 : 0;
    }
}
