package org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.Timer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.security.Groups;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.conf.ConfigurationProvider;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.event.Dispatcher;
import org.apache.hadoop.yarn.event.EventHandler;
import org.apache.hadoop.yarn.server.resourcemanager.RMContextImpl;
import org.apache.hadoop.yarn.server.resourcemanager.nodelabels.RMNodeLabelsManager;
import org.apache.hadoop.yarn.server.resourcemanager.placement.ApplicationPlacementContext;
import org.apache.hadoop.yarn.server.resourcemanager.placement.PlacementManager;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.AbstractYarnScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.QueueMetrics;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ResourceScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.AbstractLeafQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CSQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.apache.hadoop.yarn.util.Records;

/**
 * Where Hadoop places applications: one question a line on standard input ({"scheduler", "document": base64, "conf",
 * "groups": "user=g1,g2;...", "apps": [{"queue", "user", "name"}]}), one answer a line on standard output: "error" where
 * the scheduler refuses the file, else "placed": the full path of each application's leaf, or null where it is rejected.
 */
public final class Place {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Dispatcher NOBODY = new Dispatcher() {
    @Override
    public EventHandler getEventHandler() {
      return event -> { };
    }

    @Override
    public void register(Class<? extends Enum> type, EventHandler handler) {
    }
  };

  public static void main(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
    System.setOut(System.err);
    DefaultMetricsSystem.setMiniClusterMode(true);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    Path file = Files.createTempFile("place", ".xml");
    for (String line; (line = in.readLine()) != null;) {
      ObjectNode answer = JSON.createObjectNode();
      try {
        place(JSON.readTree(line), file, answer);
      } catch (Throwable thrown) {
        Throwable cause = thrown;
        while (cause.getCause() != null) {
          cause = cause.getCause();
        }
        answer.put("error", String.valueOf(cause));
      }
      out.println(JSON.writeValueAsString(answer));
      out.flush();
    }
    Files.deleteIfExists(file);
    System.exit(0);
  }

  private static void place(JsonNode question, Path file, ObjectNode answer) throws Exception {
    byte[] document = Base64.getDecoder().decode(question.get("document").asText());
    boolean fair = question.get("scheduler").asText().equals("fair");
    QueueMetrics.clearQueueMetrics();
    Configuration conf = new YarnConfiguration();
    conf.setClass(YarnConfiguration.RM_SCHEDULER, fair ? FairScheduler.class : CapacityScheduler.class,
        ResourceScheduler.class);
    conf.set("hadoop.security.group.mapping", "org.apache.hadoop.security.NullGroupsMapping");
    conf.set("hadoop.user.group.static.mapping.overrides", question.path("groups").asText(""));
    question.path("conf").fields().forEachRemaining(entry -> conf.set(entry.getKey(), entry.getValue().asText()));
    Groups.getUserToGroupsMappingServiceWithLoadedConfiguration(conf);
    RMContextImpl context = new RMContextImpl(NOBODY, null, null, null, null, null, null, null, null);
    context.setYarnConfiguration(conf);
    PlacementManager placement = new PlacementManager();
    context.setQueuePlacementManager(placement);
    AbstractYarnScheduler scheduler;
    if (fair) {
      Files.write(file, document);
      conf.set(FairSchedulerConfiguration.ALLOCATION_FILE, file.toString());
      FairScheduler made = new FairScheduler();
      made.setRMContext(context);
      scheduler = made;
    } else {
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
      RMNodeLabelsManager labels = new RMNodeLabelsManager();
      labels.init(conf);
      context.setNodeLabelManager(labels);
      CapacityScheduler made = new CapacityScheduler();
      made.setRMContext(context);
      made.setConf(conf);
      scheduler = made;
    }
    context.setScheduler(scheduler);
    scheduler.init(conf);
    Field timer = AbstractYarnScheduler.class.getDeclaredField("releaseCache");
    timer.setAccessible(true);
    if (timer.get(scheduler) != null) {
      ((Timer) timer.get(scheduler)).cancel();
    }
    ArrayNode placed = answer.putArray("placed");
    int number = 0;
    for (JsonNode app : question.get("apps")) {
      ApplicationSubmissionContext submission = Records.newRecord(ApplicationSubmissionContext.class);
      ApplicationId id = ApplicationId.newInstance(1, ++number);
      submission.setApplicationId(id);
      submission.setQueue(app.get("queue").asText());
      submission.setApplicationName(app.path("name").asText(""));
      String user = app.get("user").asText();
      try {
        ApplicationPlacementContext found = placement.placeApplication(submission, user);
        String queue = found == null ? submission.getQueue() : found.getFullQueuePath();
        if (fair) {
          FSLeafQueue leaf = found == null ? null : ((FairScheduler) scheduler).getQueueManager().getLeafQueue(queue, true);
          placed.add(leaf == null ? null : leaf.getName());
        } else {
          Method make = CapacityScheduler.class.getDeclaredMethod("getOrCreateQueueFromPlacementContext",
              ApplicationId.class, String.class, String.class, ApplicationPlacementContext.class, boolean.class);
          make.setAccessible(true);
          CSQueue leaf = (CSQueue) make.invoke(scheduler, id, user, queue, found, false);
          placed.add(leaf instanceof AbstractLeafQueue ? leaf.getQueuePath() : null);
        }
      } catch (Exception rejected) {
        placed.addNull();
      }
    }
  }
}
