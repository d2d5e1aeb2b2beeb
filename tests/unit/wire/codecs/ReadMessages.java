import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;

/**
 * Reads messages with Kafka's own classes. A line of input is API key, version, "request" or "response", and the
 * message in hexadecimal; a line of output is the message as Kafka writes it again, the bytes left over, and as JSON.
 */
public class ReadMessages {
    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ", -1);
            short version = Short.parseShort(words[1]);
            ApiMessageType type = ApiMessageType.fromApiKey(Short.parseShort(words[0]));
            ApiMessage message = words[2].equals("request") ? type.newRequest() : type.newResponse();
            ByteBuffer content = ByteBuffer.wrap(HexFormat.of().parseHex(words[3]));
            message.read(new ByteBufferAccessor(content), version);
            ByteBuffer written = MessageUtil.toByteBuffer(message, version);
            byte[] bytes = new byte[written.remaining()];
            written.get(bytes);
            Class<?> converter = Class.forName(message.getClass().getName() + "JsonConverter");
            JsonNode json = (JsonNode) converter
                .getMethod("write", message.getClass(), short.class)
                .invoke(null, message, version);
            System.out.println(HexFormat.of().formatHex(bytes) + " " + content.remaining() + " " + json);
        }
    }
}
