// Loads allocation files with the real FairScheduler and prints what it made of them: settings of every queue and
// its fair shares. It lives in the scheduler's package only to reach package-private members.
package org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.security.authorize.AccessControlList;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.ReservationACL;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.security.AccessType;
import org.apache.hadoop.yarn.server.resourcemanager.RMContextImpl;
import org.apache.hadoop.yarn.server.resourcemanager.placement.PlacementManager;
import org.apache.hadoop.yarn.server.resourcemanager.placement.PlacementRule;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ClusterNodeTracker;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.QueueMetrics;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ResourceScheduler;

/**
 * Standard input: one JSON object a line, {"xml" (text) or "base64" (bytes), "memory_mb", "vcores",
 * "active": [leaf paths] or absent (all leaves)}. Standard output: one JSON object a line, in the same order,
 * {"loaded", "error"?, "hangs"?, "queues"?, "defaults"?, ...}. Floats are printed as their bits (Float.floatToIntBits).
 */
public final class AllocationDump {
  static final ObjectMapper M = new ObjectMapper();
  /** Processor time of the worker when it began to compute shares, or -1. */
  static volatile long computing;
  static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
  // Processor time beyond which a case hangs: while it loads (the first case loads classes too), and while it computes
  // shares. A loaded machine must not look like a hang.
  static final long LOADING_NS = 8_000_000_000L, COMPUTING_NS = 2_000_000_000L;

  public static void main(String[] args) throws Exception {
    PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, "UTF-8");
    System.setOut(System.err);   // whatever Hadoop prints
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    Path file = Files.createTempFile("allocation-dump", ".xml");
    try {
      for (String line; (line = in.readLine()) != null;) {
        if (line.isBlank()) continue;
        JsonNode question = M.readTree(line);
        ObjectNode answer = M.createObjectNode();
        computing = -1;
        Thread worker = new Thread(() -> {
          try {
            answer(question, file, answer);
          } catch (ThreadDeath death) {
            // stopped by main: it hung
          } catch (Throwable e) {
            answer.put("failure", String.valueOf(e));
          }
        });
        worker.setDaemon(true);
        worker.start();
        while (worker.isAlive()) {
          long used = THREADS.getThreadCpuTime(worker.getId());
          if (computing < 0 ? used > LOADING_NS : used - computing > COMPUTING_NS) break;
          worker.join(5);
        }
        if (worker.isAlive()) {
          worker.stop();
          worker.join();
          answer.put("hangs", true);
        }
        out.println(M.writeValueAsString(answer));
        out.flush();
      }
    } finally {
      Files.deleteIfExists(file);
    }
    System.exit(0);
  }

  static Field field(Class<?> owner, String name) throws Exception {
    Field f = owner.getDeclaredField(name);
    f.setAccessible(true);
    return f;
  }

  @SuppressWarnings("unchecked")
  static void answer(JsonNode question, Path file, ObjectNode answer) throws Exception {
    byte[] document = question.has("base64")
        ? question.get("base64").binaryValue() : question.get("xml").asText().getBytes(StandardCharsets.UTF_8);
    Files.write(file, document);
    QueueMetrics.clearQueueMetrics();
    DefaultMetricsSystem.setMiniClusterMode(true);
    Configuration conf = new YarnConfiguration();
    conf.setClass(YarnConfiguration.RM_SCHEDULER, FairScheduler.class, ResourceScheduler.class);
    conf.set(FairSchedulerConfiguration.ALLOCATION_FILE, file.toString());
    RMContextImpl ctx = new RMContextImpl();
    ctx.setYarnConfiguration(conf);
    PlacementManager placement = new PlacementManager();
    ctx.setQueuePlacementManager(placement);
    FairScheduler fs = new FairScheduler();
    ctx.setScheduler(fs);
    fs.setRMContext(ctx);
    try {
      fs.init(conf);
    } catch (Exception e) {
      Throwable cause = e;
      while (cause.getCause() != null) cause = cause.getCause();
      answer.put("loaded", false).put("error", String.valueOf(cause));
      return;
    }
    answer.put("loaded", true);
    FSParentQueue root = fs.getQueueManager().getRootQueue();
    AllocationConfiguration said = fs.getAllocationConfiguration();

    Resource cluster = Resource.newInstance(question.path("memory_mb").asLong(), question.path("vcores").asInt());
    field(ClusterNodeTracker.class, "staleClusterCapacity").set(fs.getNodeTracker(), cluster);

    Map<String, Boolean> active = null;
    if (question.path("active").isArray()) {
      active = new HashMap<>();
      for (JsonNode name : question.get("active")) active.put(name.asText(), true);
    }
    sun.misc.Unsafe maker = (sun.misc.Unsafe) field(sun.misc.Unsafe.class, "theUnsafe").get(null);
    for (FSLeafQueue leaf : fs.getQueueManager().getLeafQueues()) {
      if (active != null && !active.containsKey(leaf.getName())) continue;
      // A runnable application as far as shares look at it: it counts, and has weight 1.
      FSAppAttempt app = (FSAppAttempt) maker.allocateInstance(FSAppAttempt.class);
      field(FSAppAttempt.class, "scheduler").set(app, fs);
      field(FSAppAttempt.class, "fairShare").set(app, Resource.newInstance(0, 0));
      field(FSAppAttempt.class, "appPriority").set(app, Priority.newInstance(1));
      ((List<FSAppAttempt>) field(FSLeafQueue.class, "runnableApps").get(leaf)).add(app);
      for (FSParentQueue p = leaf.getParent(); p != null; p = p.getParent()) p.incrementRunnableApps();
    }
    ObjectNode queues = answer.putObject("queues");
    settings(root, said, queues);

    ObjectNode defaults = answer.putObject("defaults");
    defaults.put("user_max_apps", said.getUserMaxAppsDefault());
    defaults.put("queue_max_apps", said.getQueueMaxAppsDefault());
    defaults.put("am_share_bits", Float.floatToIntBits(said.getQueueMaxAMShareDefault()));
    defaults.put("policy", said.getDefaultSchedulingPolicy().getName().toLowerCase());
    ObjectNode users = defaults.putObject("users");
    said.getUserMaxApps().forEach(users::put);
    ArrayNode rules = answer.putArray("rules");
    for (PlacementRule rule : placement.getPlacementRules()) rules.add(rule.getClass().getSimpleName());

    computing = THREADS.getCurrentThreadCpuTime();
    root.setSteadyFairShare(cluster);
    root.recomputeSteadyShares();
    root.update(cluster);
    shares(root, queues);
  }

  static void settings(FSQueue queue, AllocationConfiguration said, ObjectNode queues) {
    String name = queue.getName();
    ObjectNode o = queues.putObject(name);
    o.put("leaf", queue instanceof FSLeafQueue);
    o.put("policy", queue.getPolicy().getName().toLowerCase());
    o.put("weight_bits", Float.floatToIntBits(queue.getWeight()));
    resource(o, "min", queue.getMinShare());
    resource(o, "max", queue.getMaxShare());
    resource(o, "container", queue.getMaximumContainerAllocation());
    o.put("max_apps", queue.getMaxRunningApps());
    o.put("am_share_bits", Float.floatToIntBits(queue.getMaxAMShare()));
    o.put("min_timeout_ms", queue.getMinSharePreemptionTimeout());
    o.put("fair_timeout_ms", queue.getFairSharePreemptionTimeout());
    o.put("threshold_bits", Float.floatToIntBits(queue.getFairSharePreemptionThreshold()));
    o.put("preemptable", queue.isPreemptable());
    o.put("dynamic", queue.isDynamic());
    o.put("reservable", said.isReservable(name));
    ObjectNode acls = o.putObject("acls");
    Map<AccessType, AccessControlList> apps = said.getQueueAcls().get(name);
    if (apps != null) apps.forEach((type, acl) -> acls.put(type.name(), acl.getAclString()));
    Map<ReservationACL, AccessControlList> reservations = said.getReservationAcls(name);
    if (reservations != null) reservations.forEach((type, acl) -> acls.put(type.name(), acl.getAclString()));
    for (FSQueue child : queue.getChildQueues()) settings(child, said, queues);
  }

  static void shares(FSQueue queue, ObjectNode queues) {
    ObjectNode o = (ObjectNode) queues.get(queue.getName());
    resource(o, "steady", queue.getSteadyFairShare());
    resource(o, "fair", queue.getFairShare());
    for (FSQueue child : queue.getChildQueues()) shares(child, queues);
  }

  static void resource(ObjectNode o, String name, Resource r) {
    o.putArray(name).add(r.getMemorySize()).add(r.getVirtualCores());
  }
}
