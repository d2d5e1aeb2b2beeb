import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * Says which names Kafka gives. A line of input is a kind and words in hexadecimal. For "rules", the first word is the
 * rules and the others are subjects: the answer has "=" and the name for each, "-" if no rule applies, or "!" if Kafka
 * fails; or only "invalid". For "subject", the word is a name in DER: the answer is "=" and Java's text for it, or "!".
 */
public class MapPrincipals {
    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ", -1);
            System.out.println(words[0].equals("rules") ? applyRules(words) : writeSubject(bytes(words[1])));
        }
    }

    private static String applyRules(String[] words) {
        SslPrincipalMapper mapper;
        try {
            mapper = SslPrincipalMapper.fromRules(text(words[1]));
        } catch (RuntimeException error) {
            return "invalid";
        }
        StringBuilder answer = new StringBuilder();
        for (int index = 2; index < words.length; index++) {
            answer.append(index == 2 ? "" : " ").append(findName(mapper, text(words[index])));
        }
        return answer.toString();
    }

    private static String findName(SslPrincipalMapper mapper, String subject) {
        try {
            return "=" + hexadecimal(mapper.getName(subject));
        } catch (IOException error) {
            return "-";
        } catch (RuntimeException | StackOverflowError error) {
            return "!";
        }
    }

    private static String writeSubject(byte[] name) {
        try {
            return "=" + hexadecimal(new X500Principal(name).getName());
        } catch (IllegalArgumentException error) {
            return "!";
        }
    }

    private static String text(String word) {
        return new String(bytes(word), StandardCharsets.UTF_16BE);
    }

    private static byte[] bytes(String word) {
        byte[] bytes = new byte[word.length() / 2];
        for (int index = 0; index < bytes.length; index++) {
            bytes[index] = (byte) Integer.parseInt(word.substring(2 * index, 2 * index + 2), 16);
        }
        return bytes;
    }

    private static String hexadecimal(String text) {
        StringBuilder written = new StringBuilder();
        for (char each : text.toCharArray()) {
            written.append(String.format("%04x", (int) each));
        }
        return written.toString();
    }
}
