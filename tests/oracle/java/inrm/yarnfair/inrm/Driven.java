package yarnfair.inrm;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.util.Iterator;
import java.util.Map;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.Oracle;

/** Plays scripts on the real FairScheduler with a policy of this package: settings stand in the script's "inrm". */
public final class Driven {
  private static long now;

  private Driven() {}

  /** Driven IN EXPLICIT OUT [IN EXPLICIT OUT ...], as the oracle's. */
  public static void main(String[] argv) throws Exception {
    for (int at = 0; at + 2 < argv.length; at += 3) {
      JsonNode script = new ObjectMapper().readTree(new File(argv[at]));
      for (Iterator<Map.Entry<String, JsonNode>> it = script.path("inrm").fields(); it.hasNext();) {
        Map.Entry<String, JsonNode> one = it.next();
        System.setProperty(Settings.PREFIX + one.getKey(), one.getValue().asText());
      }
      now = 0;
      Accounts.restart(() -> now);
      Oracle.onTime = time -> {
        now = time;
        Accounts.observe();
      };
      Oracle.playAll(new String[] {argv[at], argv[at + 1], argv[at + 2]});
      for (Iterator<String> names = script.path("inrm").fieldNames(); names.hasNext();) {
        System.clearProperty(Settings.PREFIX + names.next());
      }
    }
    System.exit(0);
  }
}
