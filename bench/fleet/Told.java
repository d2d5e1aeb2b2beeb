import java.util.Arrays;

/** What a broker was last told of one partition. `generation`: which `forget` it came after. */
record Told(int generation, int leader, int leaderEpoch, int version, int[] isr, int[] replicas) {
    boolean says(Told other) {
        return leader == other.leader
                && leaderEpoch == other.leaderEpoch
                && version == other.version
                && Arrays.equals(isr, other.isr)
                && Arrays.equals(replicas, other.replicas);
    }

    boolean isInSync(int broker) {
        for (int member : isr) {
            if (member == broker) {
                return true;
            }
        }
        return false;
    }

    /** As a broker sees it: with the leader epoch that it has already a LeaderAndIsr tells it nothing. */
    boolean isLaterThan(Told other) {
        return leader == other.leader && leaderEpoch == other.leaderEpoch && version > other.version;
    }

    Told in(int otherGeneration) {
        return new Told(otherGeneration, leader, leaderEpoch, version, isr, replicas);
    }

    Told altered(int newVersion, int[] newIsr) {
        return new Told(generation, leader, leaderEpoch, newVersion, newIsr, replicas);
    }
}
