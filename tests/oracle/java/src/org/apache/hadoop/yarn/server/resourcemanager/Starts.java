package org.apache.hadoop.yarn.server.resourcemanager;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.service.Service;
import org.apache.hadoop.yarn.conf.ConfigurationProvider;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.QueueMetrics;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ResourceScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;

/**
 * Whether a ResourceManager starts with a yarn-site.xml and its scheduler's file: one JSON document a line on standard
 * input ({"site": base64, "document": base64, "scheduler": "fair" or "capacity"}), one answer a line on standard output.
 *
 * "start": why it does not initialise, or its scheduler does not start; "refresh": why the Capacity Scheduler fails to
 * refresh the same file. What succeeds is absent. Servers are not started: no port is opened.
 */
public final class Starts {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static byte[] capacity;

  /** Gives the ResourceManager the Capacity Scheduler's file, and no other. */
  public static final class Provider extends ConfigurationProvider {
    @Override
    public InputStream getConfigurationInputStream(Configuration unused, String name) {
      return YarnConfiguration.CS_CONFIGURATION_FILE.equals(name) ? new ByteArrayInputStream(capacity) : null;
    }

    @Override
    public void initInternal(Configuration unused) {
    }

    @Override
    public void closeInternal() {
    }
  }

  public static void main(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
    System.setOut(System.err);
    Path folder = Files.createTempDirectory("yarnfair-starts");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = in.readLine()) != null;) {
      ObjectNode answer = JSON.createObjectNode();
      start(JSON.readTree(line), folder, answer);
      out.println(JSON.writeValueAsString(answer));
      out.flush();
    }
    Files.deleteIfExists(folder.resolve("fair-scheduler.xml"));
    Files.deleteIfExists(folder);
    // Halted: threads of ResourceManagers that did not start are left.
    Runtime.getRuntime().halt(0);
  }

  private static String causes(Throwable thrown) {
    StringBuilder text = new StringBuilder();
    for (int depth = 0; thrown != null && depth < 8; thrown = thrown.getCause(), depth++) {
      text.append(depth == 0 ? "" : " <- ").append(thrown.getClass().getSimpleName()).append(": ")
          .append(thrown.getMessage());
    }
    return text.toString();
  }

  private static void start(JsonNode question, Path folder, ObjectNode answer) throws Exception {
    byte[] document = Base64.getDecoder().decode(question.get("document").asText());
    DefaultMetricsSystem.setMiniClusterMode(true);
    QueueMetrics.clearQueueMetrics();
    byte[] given = Base64.getDecoder().decode(question.get("site").asText());
    Configuration site = new Configuration(false);
    site.addResource(new ByteArrayInputStream(given), "yarn-site");
    YarnConfiguration conf = new YarnConfiguration();
    conf.addResource(new ByteArrayInputStream(given), "yarn-site");
    conf.setClass(YarnConfiguration.RM_CONFIGURATION_PROVIDER_CLASS, Provider.class, ConfigurationProvider.class);
    boolean fair = "fair".equals(question.get("scheduler").asText());
    if (site.get(YarnConfiguration.RM_SCHEDULER) == null) {
      conf.set(YarnConfiguration.RM_SCHEDULER, "org.apache.hadoop.yarn.server.resourcemanager.scheduler."
          + (fair ? "fair.FairScheduler" : "capacity.CapacityScheduler"));
    }
    if (fair) {
      Path file = folder.resolve("fair-scheduler.xml");
      Files.write(file, document);
      conf.set("yarn.scheduler.fair.allocation.file", file.toString());
    } else {
      capacity = document;
    }
    ResourceManager manager = new ResourceManager();
    try {
      org.apache.hadoop.yarn.util.resource.ResourceUtils.resetResourceTypes(conf);
      manager.init(conf);
      ResourceScheduler scheduler = manager.getResourceScheduler();
      ((Service) scheduler).start();
      if (scheduler instanceof CapacityScheduler) {
        try {
          ((CapacityScheduler) scheduler).reinitialize(conf, manager.getRMContext());
        } catch (Throwable thrown) {
          answer.put("refresh", causes(thrown));
        }
      }
    } catch (Throwable thrown) {
      answer.put("start", causes(thrown));
    } finally {
      try {
        manager.stop();
      } catch (Throwable ignored) {
        // What did not start need not stop.
      }
    }
  }
}
