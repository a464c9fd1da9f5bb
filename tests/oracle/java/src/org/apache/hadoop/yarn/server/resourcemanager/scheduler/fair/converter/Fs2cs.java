// Converts allocation files with Hadoop's own fs2cs, in its weight mode, many in one JVM. It lives in the converter's
// package only to reach package-private members.
package org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.converter;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.QueueMetrics;

/**
 * Standard input: one JSON object a line, {"xml", "site": {property: value}}. Standard output: one a line, in the same
 * order, {"capacity": {property: value}, "site": {property: value}} or {"error"}.
 */
public final class Fs2cs {
  static final ObjectMapper M = new ObjectMapper();

  public static void main(String[] args) throws Exception {
    PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, "UTF-8");
    System.setOut(System.err);   // whatever Hadoop prints
    Path folder = Files.createTempDirectory("fs2cs");
    Path fair = folder.resolve("fair.xml"), site = folder.resolve("site.xml"), to = folder.resolve("to");
    Files.createDirectory(to);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = in.readLine()) != null;) {
      if (line.isBlank()) continue;
      JsonNode question = M.readTree(line);
      Files.write(fair, question.get("xml").asText().getBytes(StandardCharsets.UTF_8));
      Configuration settings = new Configuration(false);
      question.path("site").fields().forEachRemaining(e -> settings.set(e.getKey(), e.getValue().asText()));
      try (java.io.OutputStream file = Files.newOutputStream(site)) { settings.writeXml(file); }
      QueueMetrics.clearQueueMetrics();
      DefaultMetricsSystem.setMiniClusterMode(true);
      Path[] made = {to.resolve("capacity-scheduler.xml"), to.resolve("yarn-site.xml")};
      for (Path one : made) Files.deleteIfExists(one);
      ObjectNode answer = M.createObjectNode();
      int code = 1;
      try {
        code = new FSConfigToCSConfigArgumentHandler().parseAndConvert(new String[] {
            "-y", site.toString(), "-f", fair.toString(), "-o", to.toString(), "-s"});
      } catch (Exception refused) {
        refused.printStackTrace();
      }
      if (code != 0) {
        answer.put("error", code);
      } else {
        String[] names = {"capacity", "site"};
        for (int i = 0; i < 2; i++) {
          Configuration conf = new Configuration(false);
          conf.addResource(made[i].toUri().toURL());
          ObjectNode said = answer.putObject(names[i]);
          for (Map.Entry<String, String> e : conf) said.put(e.getKey(), conf.getRaw(e.getKey()));
        }
      }
      out.println(M.writeValueAsString(answer));
      out.flush();
    }
    System.exit(0);
  }
}
