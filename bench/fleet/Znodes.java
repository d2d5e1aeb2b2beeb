import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/** Writes the data that a measurement begins from, and sees when znodes are gone. */
final class Znodes {
    private static final int MULTIS_IN_FLIGHT = 16;

    private final ZooKeeper zookeeper;

    Znodes(ZooKeeper zookeeper) {
        this.zookeeper = zookeeper;
    }

    /**
     * Creates the znodes of a file, `["path", "data" or null]` on each line, parents first, so many in one multi; the time
     * just before the last multi was sent.
     */
    long create(String file, int atOnce) throws Exception {
        Semaphore inFlight = new Semaphore(MULTIS_IN_FLIGHT);
        AtomicInteger failed = new AtomicInteger(Code.OK.intValue());
        long sentUs = 0;
        try (BufferedReader lines = Files.newBufferedReader(Path.of(file), StandardCharsets.UTF_8)) {
            List<Op> multi = new ArrayList<>();
            String line = lines.readLine();
            while (line != null) {
                JsonNode znode = Fleet.JSON.readTree(line);
                byte[] data = znode.get(1).isNull() ? null : znode.get(1).asText().getBytes(StandardCharsets.UTF_8);
                multi.add(Op.create(znode.get(0).asText(), data, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT));
                line = lines.readLine();
                if (multi.size() == atOnce || line == null) {
                    inFlight.acquire();
                    sentUs = Wire.nowUs();
                    zookeeper.multi(multi, (code, path, context, results) -> {
                        failed.compareAndSet(Code.OK.intValue(), code);
                        inFlight.release();
                    }, null);
                    multi = new ArrayList<>();
                }
            }
        }
        inFlight.acquire(MULTIS_IN_FLIGHT);
        if (failed.get() != Code.OK.intValue()) {
            throw new IllegalStateException("not written: " + Code.get(failed.get()));
        }
        return sentUs;
    }

    /** Waits until a znode has no children; when that was seen. */
    long childrenGone(String path) throws Exception {
        while (true) {
            CountDownLatch changed = new CountDownLatch(1);
            if (zookeeper.getChildren(path, event -> changed.countDown()).isEmpty()) {
                return Wire.nowUs();
            }
            changed.await();
        }
    }
}
