import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/** Partitions by topic and number, and what was told of each. */
final class Book {
    final Map<String, Told[]> topics = new HashMap<>();

    Told get(String topic, int partition) {
        Told[] partitions = topics.get(topic);
        return partitions == null || partition >= partitions.length ? null : partitions[partition];
    }

    void put(String topic, int partition, Told told) {
        Told[] partitions = topics.computeIfAbsent(topic, name -> new Told[partition + 1]);
        if (partition >= partitions.length) {
            partitions = Arrays.copyOf(partitions, Math.max(partition + 1, partitions.length * 2));
            topics.put(topic, partitions);
        }
        partitions[partition] = told;
    }

    /** True where this is news: nothing was told since the last `forget`, or something else. */
    boolean note(String topic, int partition, Told told) {
        Told before = get(topic, partition);
        put(topic, partition, told);
        return before == null || before.generation() != told.generation() || !before.says(told);
    }

    boolean remove(String topic, int partition) {
        boolean isThere = get(topic, partition) != null;
        if (isThere) {
            put(topic, partition, null);
        }
        return isThere;
    }
}
