import java.util.Arrays;

/** The state of one partition that a broker was last sent. `generation`: which `forget` it came after. */
record Sent(int generation, int leader, int leaderEpoch, int version, int[] isr, int[] replicas) {
    boolean says(Sent other) {
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
    boolean isLaterThan(Sent other) {
        return leader == other.leader && leaderEpoch == other.leaderEpoch && version > other.version;
    }

    Sent in(int otherGeneration) {
        return new Sent(otherGeneration, leader, leaderEpoch, version, isr, replicas);
    }

    Sent altered(int newVersion, int[] newIsr) {
        return new Sent(generation, leader, leaderEpoch, newVersion, newIsr, replicas);
    }
}
