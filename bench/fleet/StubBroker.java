import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.message.ApiVersionsResponseData;
import org.apache.kafka.common.message.ApiVersionsResponseData.ApiVersion;
import org.apache.kafka.common.message.LeaderAndIsrRequestData;
import org.apache.kafka.common.message.LeaderAndIsrResponseData;
import org.apache.kafka.common.message.LeaderAndIsrResponseData.LeaderAndIsrPartitionError;
import org.apache.kafka.common.message.LeaderAndIsrResponseData.LeaderAndIsrTopicError;
import org.apache.kafka.common.message.StopReplicaRequestData;
import org.apache.kafka.common.message.StopReplicaResponseData;
import org.apache.kafka.common.message.StopReplicaResponseData.StopReplicaPartitionError;
import org.apache.kafka.common.message.UpdateMetadataResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/**
 * A broker as the controller sees one: a session, a registration as Kafka 3.9's, and a port that acknowledges at once.
 *
 * <p>What it is sent goes to the clerk as bytes. Only what must be known for a true answer is decoded here: the answer
 * to LeaderAndIsr and StopReplica names every partition.
 */
final class StubBroker {
    private static final int SESSION_TIMEOUT_MS = 30_000;

    final int id;
    private final int port;
    private final String connect;
    private final Clerk clerk;
    private final Set<Wire> connections = ConcurrentHashMap.newKeySet();
    private ZooKeeper session;
    private ServerSocket server;
    private volatile long epoch = -1;

    StubBroker(int id, int port, String connect, Clerk clerk) {
        this.id = id;
        this.port = port;
        this.connect = connect;
        this.clerk = clerk;
    }

    /** The czxid of its registration, -1 while it is not registered. */
    long epoch() {
        return epoch;
    }

    /** Listens and registers; the time just before it is registered. */
    synchronized long start() throws Exception {
        server = new ServerSocket(port, 50, InetAddress.getLoopbackAddress());
        ServerSocket accepting = server;
        Fleet.thread("accept-" + id, () -> accept(accepting));
        session = connected(connect);
        long began = Wire.nowUs();
        String path = "/brokers/ids/" + id;
        session.create(path, registration(), ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL, new Stat());
        epoch = session.exists(path, false).getCzxid();
        return began;
    }

    /** Ends the session, so that the registration goes at once, and all connections; the time just before it. */
    synchronized long kill() throws Exception {
        long began = Wire.nowUs();
        session.close();
        epoch = -1;
        server.close();
        connections.forEach(Wire::close);
        return began;
    }

    static ZooKeeper connected(String connect) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper session = new ZooKeeper(connect, SESSION_TIMEOUT_MS, event -> {
            if (event.getState() == KeeperState.SyncConnected) {
                connected.countDown();
            }
        });
        if (!connected.await(SESSION_TIMEOUT_MS, TimeUnit.MILLISECONDS)) {
            throw new IOException("no connection to ZooKeeper at " + connect);
        }
        return session;
    }

    private byte[] registration() {
        return String.format(
                        "{\"version\":5,\"host\":\"127.0.0.1\",\"port\":%d,\"endpoints\":[\"PLAINTEXT://127.0.0.1:%d\"],"
                                + "\"listener_security_protocol_map\":{\"PLAINTEXT\":\"PLAINTEXT\"},\"jmx_port\":-1,"
                                + "\"timestamp\":\"%d\",\"features\":{}}",
                        port, port, System.currentTimeMillis())
                .getBytes(StandardCharsets.UTF_8);
    }

    private void accept(ServerSocket accepting) {
        while (true) {
            try {
                Socket socket = accepting.accept();
                Fleet.thread("serve-" + id, () -> serve(socket));
            } catch (IOException closed) {
                return;
            }
        }
    }

    private void serve(Socket socket) {
        try (Wire wire = new Wire(socket)) {
            connections.add(wire);
            byte[] frame;
            while ((frame = wire.read()) != null) {
                long receivedUs = Wire.nowUs();
                RequestHeader header = RequestHeader.parse(ByteBuffer.wrap(frame));
                ApiMessage answer = answer(header, frame);
                if (answer == null) {
                    System.err.println("broker " + id + " hangs up: it serves no " + header.apiKey());
                    return;
                }
                wire.answer(header, answer);
                if (header.apiKey() != ApiKeys.API_VERSIONS) { // asked now and then, to see whether somebody answers
                    clerk.received(new Received(this, receivedUs, frame));
                }
            }
        } catch (IOException closed) {
            // The controller left, or this broker was killed.
        }
    }

    /** Success for all that is asked; null where this is nothing that a controller asks. */
    static ApiMessage answer(RequestHeader header, byte[] frame) {
        return switch (header.apiKey()) {
            case LEADER_AND_ISR -> acknowledged(new LeaderAndIsrRequestData(body(frame), header.apiVersion()));
            case STOP_REPLICA -> acknowledged(new StopReplicaRequestData(body(frame), header.apiVersion()));
            case UPDATE_METADATA -> new UpdateMetadataResponseData();
            case API_VERSIONS -> served();
            default -> null;
        };
    }

    /** What a broker of this release takes of a controller: it is asked before it is sent anything. */
    private static ApiVersionsResponseData served() {
        ApiVersionsResponseData answer = new ApiVersionsResponseData();
        for (ApiKeys api : List.of(ApiKeys.LEADER_AND_ISR, ApiKeys.STOP_REPLICA, ApiKeys.UPDATE_METADATA)) {
            answer.apiKeys().add(new ApiVersion()
                    .setApiKey(api.id)
                    .setMinVersion(api.oldestVersion())
                    .setMaxVersion(api.latestVersion()));
        }
        return answer;
    }

    /** A reader that stands behind the header. */
    static ByteBufferAccessor body(byte[] frame) {
        ByteBuffer buffer = ByteBuffer.wrap(frame);
        RequestHeader.parse(buffer);
        return new ByteBufferAccessor(buffer);
    }

    private static ApiMessage acknowledged(LeaderAndIsrRequestData request) {
        LeaderAndIsrResponseData answer = new LeaderAndIsrResponseData();
        for (var topic : request.topicStates()) {
            var partitions = new ArrayList<LeaderAndIsrPartitionError>(topic.partitionStates().size());
            for (var partition : topic.partitionStates()) {
                partitions.add(new LeaderAndIsrPartitionError().setPartitionIndex(partition.partitionIndex()));
            }
            answer.topics().add(
                    new LeaderAndIsrTopicError().setTopicId(topic.topicId()).setPartitionErrors(partitions));
        }
        return answer;
    }

    private static ApiMessage acknowledged(StopReplicaRequestData request) {
        StopReplicaResponseData answer = new StopReplicaResponseData();
        for (var topic : request.topicStates()) {
            for (var partition : topic.partitionStates()) {
                answer.partitionErrors().add(new StopReplicaPartitionError()
                        .setTopicName(topic.topicName())
                        .setPartitionIndex(partition.partitionIndex()));
            }
        }
        return answer;
    }
}
