import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.ZooKeeper;

/**
 * Reads what ZooKeeper has, and holds what each broker was sent against it.
 *
 * <p>Every broker must know every partition's leader, epoch, ISR and version; every live replica the leader and its epoch
 * (an ISR change is sent to all in UpdateMetadata, and to no replica by LeaderAndIsr). Nobody may know or host more.
 */
final class Comparison {
    private static final int PATHS_OF_A_READ = 500;
    private static final int MOST_EXAMPLES = 5;

    private final ZooKeeper zookeeper;
    private final Clerk clerk;
    private final List<Integer> live;
    private final Map<Integer, Integer> leaders = new TreeMap<>();
    private final Map<Integer, Integer> inSync = new TreeMap<>();
    private final Map<Integer, Integer> replicas = new TreeMap<>();
    private final Map<Integer, Integer> hosted = new HashMap<>();
    private final ArrayNode examples = Fleet.JSON.createArrayNode();
    private int topics;
    private int partitions;
    private int stateless;
    private int underReplicated;
    private int reassigning;
    private int differences;

    private record Partition(String topic, int number, int[] replicas) {
        String path() {
            return "/brokers/topics/" + topic + "/partitions/" + number + "/state";
        }
    }

    Comparison(ZooKeeper zookeeper, Clerk clerk, List<Integer> live) {
        this.zookeeper = zookeeper;
        this.clerk = clerk;
        this.live = live;
    }

    ObjectNode result() throws Exception {
        List<Partition> all = assignments();
        synchronized (clerk) {
            clerk.drain();
            for (int from = 0; from < all.size(); from += PATHS_OF_A_READ) {
                compare(all.subList(from, Math.min(all.size(), from + PATHS_OF_A_READ)));
            }
            countWhatIsTooMuch();
        }
        ObjectNode answer = Fleet.JSON.createObjectNode();
        answer.put("topics", topics);
        answer.put("partitions", partitions);
        answer.put("stateless", stateless);
        answer.put("under_replicated", underReplicated);
        answer.put("reassigning", reassigning);
        answer.put("differences", differences);
        answer.set("leaders", Fleet.JSON.valueToTree(leaders));
        answer.set("in_sync", Fleet.JSON.valueToTree(inSync));
        answer.set("replicas", Fleet.JSON.valueToTree(replicas));
        answer.set("examples", examples);
        return answer;
    }

    private List<Partition> assignments() throws Exception {
        List<String> names = zookeeper.getChildren("/brokers/topics", false);
        names.remove(Clerk.PROBED_TOPIC);
        List<Partition> all = new ArrayList<>();
        for (int from = 0; from < names.size(); from += PATHS_OF_A_READ) {
            List<String> some = names.subList(from, Math.min(names.size(), from + PATHS_OF_A_READ));
            List<JsonNode> found = read(some.stream().map(name -> "/brokers/topics/" + name).toList());
            for (int index = 0; index < some.size(); index++) {
                JsonNode topic = found.get(index);
                if (topic != null) {
                    String name = some.get(index);
                    topics++;
                    reassigning += topic.path("adding_replicas").size() + topic.path("removing_replicas").size();
                    topic.get("partitions").fields().forEachRemaining(entry ->
                            all.add(new Partition(name, Integer.parseInt(entry.getKey()), ints(entry.getValue()))));
                }
            }
        }
        partitions = all.size();
        return all;
    }

    private final Map<JsonNode, Integer> versions = new java.util.IdentityHashMap<>();

    private List<JsonNode> read(List<String> paths) throws Exception {
        versions.clear();
        List<JsonNode> found = new ArrayList<>();
        for (OpResult result : zookeeper.multi(paths.stream().map(Op::getData).toList())) {
            if (result instanceof OpResult.GetDataResult data) {
                JsonNode node = Fleet.JSON.readTree(data.getData());
                versions.put(node, data.getStat().getVersion());
                found.add(node);
            } else {
                found.add(null);
            }
        }
        return found;
    }

    private void compare(List<Partition> some) throws Exception {
        List<JsonNode> states = read(some.stream().map(Partition::path).toList());
        for (int index = 0; index < some.size(); index++) {
            Partition partition = some.get(index);
            JsonNode state = states.get(index);
            if (state == null) {
                stateless++;
                continue;
            }
            Sent actual = new Sent(
                    0, state.get("leader").asInt(), state.get("leader_epoch").asInt(), versions.get(state), ints(state.get("isr")), partition.replicas());
            leaders.merge(actual.leader(), 1, Integer::sum);
            for (int member : actual.isr()) {
                inSync.merge(member, 1, Integer::sum);
            }
            underReplicated += actual.isr().length < partition.replicas().length ? 1 : 0;
            compare(partition, actual);
        }
    }

    private void compare(Partition partition, Sent actual) {
        for (int replica : partition.replicas()) {
            replicas.merge(replica, 1, Integer::sum);
            if (live.contains(replica)) {
                hosted.merge(replica, 1, Integer::sum);
                Sent sent = sent(clerk.hosted, replica, partition);
                if (sent == null || sent.leader() != actual.leader() || sent.leaderEpoch() != actual.leaderEpoch()) {
                    differs("replica", replica, partition, sent, actual);
                }
            }
        }
        for (int broker : live) {
            Sent sent = sent(clerk.known, broker, partition);
            if (sent == null || !sent.says(actual)) {
                differs("metadata", broker, partition, sent, actual);
            }
        }
    }

    private static Sent sent(Map<Integer, Book> books, int broker, Partition partition) {
        Book book = books.get(broker);
        return book == null ? null : book.get(partition.topic(), partition.number());
    }

    private void countWhatIsTooMuch() {
        for (int broker : live) {
            tooMuch("metadata", broker, clerk.known.get(broker), partitions - stateless);
            tooMuch("replica", broker, clerk.hosted.get(broker), hosted.getOrDefault(broker, 0));
        }
    }

    private void tooMuch(String kind, int broker, Book book, int expected) {
        int sent = 0;
        if (book != null) {
            for (var topic : book.topics.entrySet()) {
                if (!topic.getKey().equals(Clerk.PROBED_TOPIC)) {
                    for (Sent one : topic.getValue()) {
                        sent += one == null ? 0 : 1;
                    }
                }
            }
        }
        if (sent > expected) {
            differences += sent - expected;
            examples.add(String.format("%s %d was sent %d partitions and should know %d", kind, broker, sent, expected));
        }
    }

    private void differs(String kind, int broker, Partition partition, Sent sent, Sent actual) {
        differences++;
        if (examples.size() < MOST_EXAMPLES) {
            examples.add(String.format(
                    "%s %d, %s-%d: sent %s, is %s", kind, broker, partition.topic(), partition.number(), sent, actual));
        }
    }

    private static int[] ints(JsonNode array) {
        int[] ints = new int[array.size()];
        for (int index = 0; index < ints.length; index++) {
            ints[index] = array.get(index).asInt();
        }
        return ints;
    }
}
