package org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity;

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
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Timer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.conf.ConfigurationProvider;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.event.Dispatcher;
import org.apache.hadoop.yarn.event.EventHandler;
import org.apache.hadoop.yarn.server.resourcemanager.RMContextImpl;
import org.apache.hadoop.yarn.server.resourcemanager.nodelabels.RMNodeLabelsManager;
import org.apache.hadoop.yarn.server.resourcemanager.placement.PlacementManager;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.AbstractYarnScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ClusterNodeTracker;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.QueueMetrics;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ResourceLimits;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ResourceScheduler;

/**
 * Whether the CapacityScheduler takes capacity-scheduler.xml files: one JSON document a line on standard input
 * ({"document": base64, "conf": {...}}), one answer a line on standard output.
 *
 * "start": why it does not start; "node": why it fails when the first node registers; "refresh": why a refresh of the
 * same file fails. What succeeds is absent.
 */
public final class Load {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
    System.setOut(System.err);
    DefaultMetricsSystem.setMiniClusterMode(true);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = in.readLine()) != null;) {
      ObjectNode answer = JSON.createObjectNode();
      load(JSON.readTree(line), answer);
      out.println(JSON.writeValueAsString(answer));
      out.flush();
    }
    System.exit(0);
  }

  private static String causes(Throwable thrown) {
    StringBuilder text = new StringBuilder();
    for (int depth = 0; thrown != null && depth < 6; thrown = thrown.getCause(), depth++) {
      text.append(depth == 0 ? "" : " <- ").append(thrown.getClass().getSimpleName()).append(": ")
          .append(thrown.getMessage());
    }
    return text.toString();
  }

  private static void load(JsonNode question, ObjectNode answer) throws Exception {
    byte[] document = Base64.getDecoder().decode(question.get("document").asText());
    QueueMetrics.clearQueueMetrics();
    Configuration conf = new YarnConfiguration();
    conf.setClass(YarnConfiguration.RM_SCHEDULER, CapacityScheduler.class, ResourceScheduler.class);
    question.path("conf").fields().forEachRemaining(entry -> conf.set(entry.getKey(), entry.getValue().asText()));
    org.apache.hadoop.yarn.util.resource.ResourceUtils.resetResourceTypes(conf);
    Dispatcher dispatcher = new Dispatcher() {
      @Override
      public EventHandler getEventHandler() {
        return event -> { };
      }

      @Override
      public void register(Class<? extends Enum> type, EventHandler handler) {
      }
    };
    RMContextImpl context = new RMContextImpl(dispatcher, null, null, null, null, null, null, null, null);
    context.setYarnConfiguration(conf);
    context.setConfigurationProvider(new ConfigurationProvider() {
      @Override
      public InputStream getConfigurationInputStream(Configuration unused, String name) {
        return YarnConfiguration.CS_CONFIGURATION_FILE.equals(name) ? new ByteArrayInputStream(document) : null;
      }

      @Override
      public void initInternal(Configuration unused) {
      }

      @Override
      public void closeInternal() {
      }
    });
    context.setQueuePlacementManager(new PlacementManager());
    RMNodeLabelsManager labels = new RMNodeLabelsManager();
    context.setNodeLabelManager(labels);
    CapacityScheduler scheduler = new CapacityScheduler();
    context.setScheduler(scheduler);
    scheduler.setRMContext(context);
    scheduler.setConf(conf);
    try {
      labels.init(conf);
      scheduler.init(conf);
    } catch (Throwable thrown) {
      answer.put("start", causes(thrown));
      return;
    } finally {
      // A thread of its own, which would stay for each file.
      Field timer = AbstractYarnScheduler.class.getDeclaredField("releaseCache");
      timer.setAccessible(true);
      if (timer.get(scheduler) != null) {
        ((Timer) timer.get(scheduler)).cancel();
      }
    }
    Resource cluster =
        Resource.newInstance(question.path("memory_mb").asLong(1048576), question.path("vcores").asInt(1000));
    Field capacity = ClusterNodeTracker.class.getDeclaredField("staleClusterCapacity");
    capacity.setAccessible(true);
    capacity.set(scheduler.getNodeTracker(), cluster);
    labels.activateNode(NodeId.newInstance("n1", 1), cluster);
    try {
      scheduler.getRootQueue().updateClusterResource(cluster, new ResourceLimits(cluster));
    } catch (Throwable thrown) {
      answer.put("node", causes(thrown));
    }
    try {
      scheduler.reinitialize(conf, context);
    } catch (Throwable thrown) {
      answer.put("refresh", causes(thrown));
    }
  }
}
