import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/** Partitions by topic and number, and what was sent of each. */
final class Book {
    final Map<String, Sent[]> topics = new HashMap<>();

    Sent get(String topic, int partition) {
        Sent[] partitions = topics.get(topic);
        return partitions == null || partition >= partitions.length ? null : partitions[partition];
    }

    void put(String topic, int partition, Sent sent) {
        Sent[] partitions = topics.computeIfAbsent(topic, name -> new Sent[partition + 1]);
        if (partition >= partitions.length) {
            partitions = Arrays.copyOf(partitions, Math.max(partition + 1, partitions.length * 2));
            topics.put(topic, partitions);
        }
        partitions[partition] = sent;
    }

    /** True where this is news: nothing was sent since the last `forget`, or something else. */
    boolean note(String topic, int partition, Sent sent) {
        Sent before = get(topic, partition);
        put(topic, partition, sent);
        return before == null || before.generation() != sent.generation() || !before.says(sent);
    }

    boolean remove(String topic, int partition) {
        boolean isThere = get(topic, partition) != null;
        if (isThere) {
            put(topic, partition, null);
        }
        return isThere;
    }
}
