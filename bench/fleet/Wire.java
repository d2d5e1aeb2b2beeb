import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Instant;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.RequestUtils;
import org.apache.kafka.common.requests.ResponseHeader;

/** Kafka's frames over a blocking socket: a length, then a header, then a message. */
final class Wire implements AutoCloseable {
    private static final int READ_BUFFER_BYTES = 1 << 16;

    private final Socket socket;
    private final DataInputStream input;
    private final OutputStream output;
    private int correlationId;

    Wire(Socket socket) throws IOException {
        this.socket = socket;
        socket.setTcpNoDelay(true);
        input = new DataInputStream(new BufferedInputStream(socket.getInputStream(), READ_BUFFER_BYTES));
        output = socket.getOutputStream();
    }

    static Wire connect(InetSocketAddress address, int timeoutMs) throws IOException {
        Socket socket = new Socket();
        try {
            socket.connect(address, timeoutMs);
            socket.setSoTimeout(timeoutMs);
            return new Wire(socket);
        } catch (IOException error) {
            socket.close();
            throw error;
        }
    }

    /** Microseconds since 1970, which the znodes' times can be compared with. */
    static long nowUs() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000 + now.getNano() / 1_000;
    }

    /** The next frame, whole; null where the peer has closed. */
    byte[] read() throws IOException {
        try {
            byte[] frame = new byte[input.readInt()];
            input.readFully(frame);
            return frame;
        } catch (EOFException closed) {
            return null;
        }
    }

    void answer(RequestHeader request, ApiMessage answer) throws IOException {
        ResponseHeader header = request.toResponseHeader();
        write(RequestUtils.serialize(header.data(), header.headerVersion(), answer, request.apiVersion()));
    }

    /** Sends a request and waits for the answer; what is returned begins with the answer's message. */
    ByteBuffer ask(ApiKeys api, short version, String clientId, ApiMessage message) throws IOException {
        RequestHeader header = new RequestHeader(api, version, clientId, correlationId++);
        write(RequestUtils.serialize(header.data(), header.headerVersion(), message, version));
        byte[] frame = read();
        if (frame == null) {
            throw new EOFException("closed instead of an answer to " + api);
        }
        ByteBuffer answer = ByteBuffer.wrap(frame);
        ResponseHeader.parse(answer, api.responseHeaderVersion(version));
        return answer;
    }

    private void write(ByteBuffer content) throws IOException {
        ByteBuffer frame = ByteBuffer.allocate(4 + content.remaining());
        frame.putInt(content.remaining()).put(content);
        output.write(frame.array());
        output.flush();
    }

    @Override
    public void close() {
        try {
            socket.close();
        } catch (IOException ignored) {
            // It is of no use any more either way.
        }
    }
}
