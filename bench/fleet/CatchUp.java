import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionRequestData.BrokerState;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;

/**
 * Followers catch up at once, and their leaders say so with AlterPartition, as Kafka's do: one request in flight for each
 * broker, with all that is pending, again and again until it is accepted. Everything here runs in the clerk's turn, but
 * for the sending.
 */
final class CatchUp {
    static final short VERSION = 3;
    private static final int TIMEOUT_MS = 30_000;
    private static final int BACKOFF_MS = 50;

    private record Partition(String topic, int number) {}

    /** What one broker, as a leader, has to ask for, and the thread that asks. */
    private static final class Leader {
        final StubBroker broker;
        final Set<Partition> pending = new LinkedHashSet<>();
        final ExecutorService sender = Executors.newSingleThreadExecutor(Fleet::daemon);
        boolean isSending;
        Wire wire;

        Leader(StubBroker broker) {
            this.broker = broker;
        }
    }

    private final Clerk clerk;
    private final Map<Partition, Map<Integer, Integer>> fetching = new HashMap<>();
    private final Map<Integer, Leader> leaders = new HashMap<>();
    private final Map<Integer, Integer> errors = new TreeMap<>();
    private int accepted;

    CatchUp(Clerk clerk) {
        this.clerk = clerk;
    }

    /** A broker was sent a partition's state: it may fetch from the leader, or be the leader that others fetch from. */
    void sent(StubBroker broker, String topic, int number, Sent sent) {
        Partition partition = new Partition(topic, number);
        if (!sent.isInSync(broker.id)) {
            fetching.computeIfAbsent(partition, any -> new HashMap<>()).put(broker.id, sent.leaderEpoch());
        }
        if (fetching.containsKey(partition)) {
            consider(partition, sent.leader());
        }
    }

    void report(ObjectNode report) {
        report.put("accepted", accepted);
        report.set("errors", Fleet.JSON.valueToTree(errors));
        report.put("pending", leaders.values().stream().mapToInt(leader -> leader.pending.size()).sum());
    }

    private void consider(Partition partition, int leaderId) {
        StubBroker broker = clerk.brokers.get(leaderId);
        if (broker == null) {
            return;
        }
        Leader leader = leaders.computeIfAbsent(leaderId, id -> new Leader(broker));
        if (newIsr(leader, partition) != null) {
            leader.pending.add(partition);
            send(leader);
        }
    }

    /** The ISR with the followers that fetch with the leader's own epoch; null where that is nothing to report. */
    private Set<Integer> newIsr(Leader leader, Partition partition) {
        Book book = clerk.hosted.get(leader.broker.id);
        Sent sent = book == null ? null : book.get(partition.topic(), partition.number());
        Map<Integer, Integer> followers = fetching.get(partition);
        if (sent == null || sent.leader() != leader.broker.id || followers == null) {
            return null;
        }
        Set<Integer> isr = new TreeSet<>();
        for (int member : sent.isr()) {
            isr.add(member);
        }
        int before = isr.size();
        followers.forEach((follower, epoch) -> {
            if (epoch == sent.leaderEpoch()) {
                isr.add(follower);
            }
        });
        return isr.size() > before ? isr : null;
    }

    private void send(Leader leader) {
        InetSocketAddress controller = clerk.controller();
        if (leader.isSending || leader.pending.isEmpty() || controller == null || leader.broker.epoch() == -1) {
            return;
        }
        AlterPartitionRequestData request = request(leader);
        if (request.topics().isEmpty()) {
            return;
        }
        leader.isSending = true;
        leader.sender.execute(() -> {
            AlterPartitionResponseData answer = ask(leader, controller, request);
            clerk.later(() -> answered(leader, request, answer));
        });
    }

    private AlterPartitionRequestData request(Leader leader) {
        var topics = new HashMap<String, AlterPartitionRequestData.TopicData>();
        for (Partition partition : leader.pending) {
            Set<Integer> isr = newIsr(leader, partition);
            if (isr == null) {
                continue;
            }
            Sent sent = clerk.hosted.get(leader.broker.id).get(partition.topic(), partition.number());
            List<BrokerState> members = new ArrayList<>();
            isr.forEach(member -> members.add(new BrokerState().setBrokerId(member)));
            topics.computeIfAbsent(
                            partition.topic(),
                            name -> new AlterPartitionRequestData.TopicData().setTopicId(clerk.topicIds.get(name)))
                    .partitions()
                    .add(new AlterPartitionRequestData.PartitionData()
                            .setPartitionIndex(partition.number())
                            .setLeaderEpoch(sent.leaderEpoch())
                            .setPartitionEpoch(sent.version())
                            .setNewIsrWithEpochs(members));
        }
        leader.pending.clear();
        return new AlterPartitionRequestData()
                .setBrokerId(leader.broker.id)
                .setBrokerEpoch(leader.broker.epoch())
                .setTopics(new ArrayList<>(topics.values()));
    }

    /** The answer, or null where there was none. */
    private static AlterPartitionResponseData ask(
            Leader leader, InetSocketAddress controller, AlterPartitionRequestData request) {
        try {
            if (leader.wire == null) {
                leader.wire = Wire.connect(controller, TIMEOUT_MS);
            }
            var answer = leader.wire.ask(ApiKeys.ALTER_PARTITION, VERSION, "fleet", request);
            var data = new AlterPartitionResponseData(new ByteBufferAccessor(answer), VERSION);
            boolean isWhole = data.errorCode() == 0
                    && data.topics().stream().allMatch(topic -> topic.partitions().stream().allMatch(p -> p.errorCode() == 0));
            if (!isWhole) {
                Thread.sleep(BACKOFF_MS);
            }
            return data;
        } catch (IOException | InterruptedException error) {
            if (leader.wire != null) {
                leader.wire.close();
                leader.wire = null;
            }
            Fleet.pause(BACKOFF_MS);
            return null;
        }
    }

    private void answered(Leader leader, AlterPartitionRequestData request, AlterPartitionResponseData answer) {
        leader.isSending = false;
        Map<Uuid, String> names = new HashMap<>();
        clerk.topicIds.forEach((name, id) -> names.put(id, name));
        if (answer == null || answer.errorCode() != 0) {
            errors.merge(answer == null ? -1 : (int) answer.errorCode(), 1, Integer::sum);
        } else {
            for (var topic : answer.topics()) {
                for (var partition : topic.partitions()) {
                    answered(leader, names.get(topic.topicId()), partition);
                }
            }
        }
        // What was not accepted is reported again, as long as there is something to report.
        for (var topic : request.topics()) {
            String name = names.get(topic.topicId());
            for (var partition : topic.partitions()) {
                consider(new Partition(name, partition.partitionIndex()), leader.broker.id);
            }
        }
        send(leader);
    }

    private void answered(Leader leader, String topic, AlterPartitionResponseData.PartitionData partition) {
        if (partition.errorCode() != 0) {
            errors.merge((int) partition.errorCode(), 1, Integer::sum);
            return;
        }
        accepted++;
        Book book = clerk.hosted.get(leader.broker.id);
        Sent sent = book.get(topic, partition.partitionIndex());
        if (sent == null || sent.leaderEpoch() != partition.leaderEpoch() || sent.version() > partition.partitionEpoch()) {
            return;
        }
        int[] isr = partition.isr().stream().mapToInt(Integer::intValue).toArray();
        book.put(topic, partition.partitionIndex(), sent.altered(partition.partitionEpoch(), isr));
        Map<Integer, Integer> followers = fetching.get(new Partition(topic, partition.partitionIndex()));
        if (followers != null) {
            for (int member : isr) {
                followers.remove(member);
            }
            if (followers.isEmpty()) {
                fetching.remove(new Partition(topic, partition.partitionIndex()));
            }
        }
    }
}
