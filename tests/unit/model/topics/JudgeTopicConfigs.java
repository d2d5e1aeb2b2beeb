import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Says what Kafka's own classes think of topic configurations. It first writes a line for each key: name, type, default.
 * Then a line of input is a configuration, as key, value, key, value..., and a line of output is "valid" or why not.
 */
public class JudgeTopicConfigs {
    private static final String SEPARATOR = "\u0001";

    public static void main(String[] arguments) throws Exception {
        ConfigDef definition = LogConfig.configDefCopy();
        for (ConfigDef.ConfigKey key : new TreeMap<>(definition.configKeys()).values()) {
            String value = ConfigDef.convertToString(key.defaultValue, key.type);
            System.out.println(key.name + SEPARATOR + key.type + SEPARATOR + value);
        }
        System.out.println();
        Map<String, ?> defaults = definition.defaultValues();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(SEPARATOR, -1);
            Properties properties = new Properties();
            for (int index = 0; index < words.length; index += 2) {
                properties.setProperty(words[index], words[index + 1]);
            }
            System.out.println(verdict(properties, defaults));
        }
    }

    private static String verdict(Properties properties, Map<String, ?> defaults) {
        try {
            LogConfig.validate(Map.of(), properties, defaults, true, true);
            return "valid";
        } catch (RuntimeException error) {
            return String.valueOf(error.getMessage()).replace('\n', ' ');
        }
    }
}
