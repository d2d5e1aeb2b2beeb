import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.LeaderAndIsrRequestData;
import org.apache.kafka.common.message.StopReplicaRequestData;
import org.apache.kafka.common.message.UpdateMetadataRequestData;
import org.apache.kafka.common.requests.RequestHeader;

/**
 * Keeps the books: what each broker was sent of each partition, and which request brought anything new.
 *
 * <p>To decode is work, and would be done on the processors that the controller under measurement needs. So requests are
 * only put aside while they arrive, and examined when somebody asks (`drain`). Only with catch-up on they are examined at
 * once, because then followers that are not in sync catch up and their leaders report it.
 */
final class Clerk {
    static final String PROBED_TOPIC = "probed";
    private static final int LEADER_DURING_DELETE = -2;
    private static final int NO_LEADER = -1;

    final Map<Integer, StubBroker> brokers = new TreeMap<>();
    final Map<Integer, Book> known = new HashMap<>();
    final Map<Integer, Book> hosted = new HashMap<>();
    final Map<String, Uuid> topicIds = new HashMap<>();
    private final Map<List<Integer>, int[]> arrays = new HashMap<>();
    private final Map<Integer, Set<Integer>> listed = new HashMap<>();
    private final ConcurrentLinkedQueue<Runnable> waiting = new ConcurrentLinkedQueue<>();
    private final Semaphore wake = new Semaphore(0);
    private final AtomicLong lastReceivedUs = new AtomicLong();
    private final CatchUp catchUp = new CatchUp(this);
    private ArrayNode requests = Fleet.JSON.createArrayNode();
    private int generation;
    private int controllerEpoch = -1;
    private volatile boolean isCatchingUp;
    private volatile InetSocketAddress controller;

    Clerk() {
        Fleet.thread("clerk", this::work);
    }

    void received(Received request) {
        lastReceivedUs.accumulateAndGet(request.receivedUs(), Math::max);
        later(() -> examine(request));
    }

    /** Has something done that looks at the books or changes them, in its turn. */
    void later(Runnable task) {
        waiting.add(task);
        if (isCatchingUp) {
            wake.release();
        }
    }

    long lastReceivedUs() {
        return lastReceivedUs.get();
    }

    /** Where the newest UpdateMetadata says that the controller is, null as long as none was examined. */
    InetSocketAddress controller() {
        return controller;
    }

    synchronized void drain() {
        for (Runnable task = waiting.poll(); task != null; task = waiting.poll()) {
            task.run();
        }
    }

    void setCatchUp(boolean isOn) {
        drain();
        isCatchingUp = isOn;
        wake.release();
    }

    boolean isCatchingUp() {
        return isCatchingUp;
    }

    /** A broker is gone, and with it what it knew. */
    synchronized void left(int broker) {
        drain();
        known.remove(broker);
        hosted.remove(broker);
        listed.remove(broker);
    }

    /** From now on everything is news. */
    synchronized void forget() {
        drain();
        generation++;
        requests = Fleet.JSON.createArrayNode();
    }

    /** The requests since the last time, and for each broker what it was sent since the last `forget`. */
    synchronized ObjectNode look() {
        drain();
        ObjectNode answer = Fleet.JSON.createObjectNode();
        answer.set("requests", requests);
        requests = Fleet.JSON.createArrayNode();
        ObjectNode brokers = answer.putObject("brokers");
        for (int broker : known.keySet()) {
            ObjectNode one = brokers.putObject(Integer.toString(broker));
            one.set("known", summary(known.get(broker)));
            one.set("hosted", summary(hosted.get(broker)));
        }
        answer.put("controller_epoch", controllerEpoch);
        catchUp.report(answer.putObject("alter_partition"));
        return answer;
    }

    private void work() {
        while (true) {
            wake.acquireUninterruptibly();
            wake.drainPermits();
            if (isCatchingUp) {
                drain();
            }
        }
    }

    private void examine(Received received) {
        RequestHeader header = RequestHeader.parse(ByteBuffer.wrap(received.frame()));
        var body = StubBroker.body(received.frame());
        ObjectNode request = Fleet.JSON.createObjectNode();
        request.put("at_us", received.receivedUs());
        request.put("broker", received.broker().id);
        request.put("api", header.apiKey().name());
        request.put("bytes", received.frame().length + 4);
        switch (header.apiKey()) {
            case LEADER_AND_ISR -> sent(received.broker(), new LeaderAndIsrRequestData(body, header.apiVersion()), request);
            case UPDATE_METADATA -> sent(received.broker(), new UpdateMetadataRequestData(body, header.apiVersion()), request);
            default -> sent(received.broker(), new StopReplicaRequestData(body, header.apiVersion()), request);
        }
        requests.add(request);
    }

    private void sent(StubBroker broker, LeaderAndIsrRequestData data, ObjectNode request) {
        Book book = hosted.computeIfAbsent(broker.id, id -> new Book());
        int partitions = 0;
        int news = 0;
        for (var topic : data.topicStates()) {
            String name = topic.topicName();
            topicIds.put(name, topic.topicId());
            for (var state : topic.partitionStates()) {
                Sent sent = new Sent(
                        generation,
                        state.leader(),
                        state.leaderEpoch(),
                        state.partitionEpoch(),
                        ints(state.isr()),
                        ints(state.replicas()));
                Sent before = book.get(name, state.partitionIndex());
                if (before != null && before.isLaterThan(sent)) {
                    sent = before.in(generation);
                }
                boolean isNews = book.note(name, state.partitionIndex(), sent);
                news += isNews && !name.equals(PROBED_TOPIC) ? 1 : 0;
                partitions++;
                if (isCatchingUp) {
                    catchUp.sent(broker, name, state.partitionIndex(), sent);
                }
            }
        }
        describe(request, data.controllerId(), data.controllerEpoch(), partitions, news);
    }

    private void sent(StubBroker broker, UpdateMetadataRequestData data, ObjectNode request) {
        Book book = known.computeIfAbsent(broker.id, id -> new Book());
        hosted.computeIfAbsent(broker.id, id -> new Book());
        Set<Integer> live = new HashSet<>();
        for (var one : data.liveBrokers()) {
            live.add(one.id());
            if (one.id() == data.controllerId() && data.controllerEpoch() >= controllerEpoch) {
                var endpoint = one.endpoints().get(0);
                controller = new InetSocketAddress(endpoint.host(), endpoint.port());
            }
        }
        int partitions = 0;
        int news = 0;
        for (var topic : data.topicStates()) {
            String name = topic.topicName();
            for (var state : topic.partitionStates()) {
                boolean isNews = state.leader() == LEADER_DURING_DELETE
                        ? book.remove(name, state.partitionIndex())
                        : book.note(
                                name,
                                state.partitionIndex(),
                                new Sent(
                                        generation,
                                        state.leader(),
                                        state.leaderEpoch(),
                                        state.zkVersion(),
                                        ints(state.isr()),
                                        ints(state.replicas())));
                news += isNews && !name.equals(PROBED_TOPIC) ? 1 : 0;
                partitions++;
            }
        }
        request.put("is_about_brokers", !live.equals(listed.put(broker.id, live)));
        describe(request, data.controllerId(), data.controllerEpoch(), partitions, news);
    }

    private void sent(StubBroker broker, StopReplicaRequestData data, ObjectNode request) {
        Book book = hosted.computeIfAbsent(broker.id, id -> new Book());
        int partitions = 0;
        int news = 0;
        for (var topic : data.topicStates()) {
            for (var state : topic.partitionStates()) {
                partitions++;
                // One that is only stopped stays; being sent that is news once in a generation.
                Sent before = book.get(topic.topicName(), state.partitionIndex());
                boolean isNews = state.deletePartition()
                        ? book.remove(topic.topicName(), state.partitionIndex())
                        : before != null
                                && book.note(
                                        topic.topicName(),
                                        state.partitionIndex(),
                                        new Sent(
                                                generation,
                                                NO_LEADER,
                                                before.leaderEpoch(),
                                                before.version(),
                                                before.isr(),
                                                before.replicas()));
                news += isNews && !topic.topicName().equals(PROBED_TOPIC) ? 1 : 0;
            }
        }
        describe(request, data.controllerId(), data.controllerEpoch(), partitions, news);
    }

    private void describe(ObjectNode request, int controllerId, int epoch, int partitions, int news) {
        controllerEpoch = Math.max(controllerEpoch, epoch);
        request.put("controller_id", controllerId);
        request.put("controller_epoch", epoch);
        request.put("partitions", partitions);
        request.put("news", news);
    }

    /** How many partitions were sent since the last `forget`, with which leaders, and whom their ISRs name. */
    private ObjectNode summary(Book book) {
        int partitions = 0;
        Map<Integer, Integer> leaders = new LinkedHashMap<>();
        Map<Integer, Integer> inSync = new LinkedHashMap<>();
        for (var topic : book.topics.entrySet()) {
            if (topic.getKey().equals(PROBED_TOPIC)) {
                continue;
            }
            for (Sent sent : topic.getValue()) {
                if (sent != null && sent.generation() == generation) {
                    partitions++;
                    leaders.merge(sent.leader(), 1, Integer::sum);
                    for (int member : sent.isr()) {
                        inSync.merge(member, 1, Integer::sum);
                    }
                }
            }
        }
        ObjectNode summary = Fleet.JSON.createObjectNode();
        summary.put("partitions", partitions);
        summary.set("leaders", Fleet.JSON.valueToTree(leaders));
        summary.set("in_sync", Fleet.JSON.valueToTree(inSync));
        return summary;
    }

    /** The same array for the same brokers: there are few of them, and millions of partitions. */
    private int[] ints(List<Integer> values) {
        return arrays.computeIfAbsent(values, Clerk::array);
    }

    private static int[] array(List<Integer> values) {
        int[] ints = new int[values.size()];
        for (int index = 0; index < ints.length; index++) {
            ints[index] = values.get(index);
        }
        return ints;
    }
}
