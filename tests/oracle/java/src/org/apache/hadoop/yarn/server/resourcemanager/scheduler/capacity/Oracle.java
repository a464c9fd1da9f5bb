// Drives the real CapacityScheduler from a JSON script. It lives in the scheduler's
// package only to read package-private members (child lists, user limits).
package org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.*;
import java.lang.reflect.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.records.*;
import org.apache.hadoop.yarn.conf.ConfigurationProvider;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.event.*;
import org.apache.hadoop.yarn.exceptions.YarnException;
import org.apache.hadoop.yarn.server.api.ContainerType;
import org.apache.hadoop.yarn.server.resourcemanager.*;
import org.apache.hadoop.yarn.server.resourcemanager.ahs.RMApplicationHistoryWriter;
import org.apache.hadoop.yarn.server.resourcemanager.metrics.SystemMetricsPublisher;
import org.apache.hadoop.yarn.server.resourcemanager.monitor.capacity.ProportionalCapacityPreemptionPolicy;
import org.apache.hadoop.yarn.server.resourcemanager.nodelabels.RMNodeLabelsManager;
import org.apache.hadoop.yarn.server.resourcemanager.placement.PlacementManager;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.*;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.*;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.*;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.AllocationExpirationInfo;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.*;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.*;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.*;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.constraint.*;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.*;
import org.apache.hadoop.yarn.server.resourcemanager.security.*;
import org.apache.hadoop.yarn.server.scheduler.SchedulerRequestKey;
import org.apache.hadoop.yarn.util.Records;
import org.apache.hadoop.yarn.util.SystemClock;
import org.apache.hadoop.yarn.util.resource.ResourceUtils;
import org.apache.hadoop.yarn.util.resource.Resources;

public final class Oracle {
  static final ObjectMapper M = new ObjectMapper();
  static final String PREFIX = "yarn.scheduler.capacity.";

  // ---- small holders -------------------------------------------------------
  static final class App {
    String name, queue, user;
    ApplicationId id;
    ApplicationAttemptId attempt;
    int attemptNo = 0;
    boolean managed, dead, autoEnd, endQueued;
    String onAmKilled;
    Resource amRes;
    Container master;              // of the current attempt
    long amAt = -1;
    final List<Con> cons = new ArrayList<>();   // by ordinal
    final List<ObjectNode> held = new ArrayList<>();
    final Map<Integer, Long> durations = new HashMap<>();
    int asksToCome;
    int live;                      // live containers, AM included
    RMApp rmApp;
    RMAppAttempt rmAttempt;
  }

  static final class Con {
    App app; int n; RMContainer rm; ContainerId id; String node, queue;
    boolean am, done, launched, acquired, finishing;
  }

  static final class Nm {
    String name; RMNode rmNode; boolean registered, draining; Resource total, own;
    final List<Con> toLaunch = new ArrayList<>();
    final List<Object[]> toComplete = new ArrayList<>();  // {ContainerId, heartbeats left, Con}
    List<UpdatedContainerInfo> updates = new ArrayList<>();
    RMContainer reserved;
  }

  static final class Due implements Comparable<Due> {
    final long t, seq; final Runnable r;
    Due(long t, long seq, Runnable r) { this.t = t; this.seq = seq; this.r = r; }
    public int compareTo(Due o) { return t != o.t ? Long.compare(t, o.t) : Long.compare(seq, o.seq); }
  }

  // ---- state ---------------------------------------------------------------
  long now = 0, dueSeq = 0;
  final PriorityQueue<Due> due = new PriorityQueue<>();
  final Map<String, App> apps = new LinkedHashMap<>();
  final Map<ApplicationId, App> byId = new HashMap<>();
  final Map<String, Nm> nodes = new LinkedHashMap<>();
  final Map<ContainerId, Con> cons = new HashMap<>();
  final Set<ContainerId> everReserved = new HashSet<>();
  final LinkedHashSet<App> fresh = new LinkedHashSet<>();     // got containers in this event
  final LinkedHashSet<App> maybeEnd = new LinkedHashSet<>();
  final LinkedHashSet<App> inactive = new LinkedHashSet<>();  // attempts not yet activated
  final Map<String, Integer> pendingAsks = new HashMap<>();
  final ArrayDeque<SchedulerEvent> toScheduler = new ArrayDeque<>();  // sent by the RM to itself; the sender may hold locks
  final ObjectNode out = M.createObjectNode();
  final ArrayNode assignments = out.putArray("assignments"), shares = out.putArray("shares"),
      activations = out.putArray("activations"), preempted = out.putArray("preempted"),
      reserved = out.putArray("reserved"), completed = out.putArray("completed"),
      rejected = out.putArray("rejected"), skipped = out.putArray("skipped"), errors = out.putArray("errors");
  ArrayNode explicit;               // the base events as executed
  CapacityScheduler cs;
  RMContextImpl ctx;
  Configuration conf;
  Map<String, String> csProps = new LinkedHashMap<>();
  String optAcquire, optLaunch, optShares;
  ArrayNode headrooms;                // null unless the script asks for them
  int optCleanup, nodePort;
  long clusterTs;
  int appSeq = 0;
  ProportionalCapacityPreemptionPolicy preemptor;
  Field activeUsers;

  // ---- generic stand-ins ---------------------------------------------------
  static Object zero(Class<?> r) {
    if (r == boolean.class) return false;
    if (r == int.class) return 0;
    if (r == long.class) return 0L;
    if (r == float.class) return 0f;
    if (r == double.class) return 0d;
    if (r == List.class) return new ArrayList<>();
    if (r == Set.class) return new HashSet<>();
    if (r == Map.class) return new HashMap<>();
    return null;
  }
  interface Answer { Object on(String method, Object[] args); }
  static final Object NONE = new Object();
  @SuppressWarnings("unchecked")
  static <T> T stub(Class<T> c, Answer a) {
    return (T) Proxy.newProxyInstance(c.getClassLoader(), new Class<?>[] {c}, (p, m, args) -> {
      switch (m.getName()) {
        case "hashCode": if (args == null) return System.identityHashCode(p); break;
        case "equals": if (args != null && args.length == 1) return p == args[0]; break;
        case "toString": return c.getSimpleName();
        default:
      }
      Object r = a.on(m.getName(), args);
      return r == NONE ? zero(m.getReturnType()) : r;
    });
  }

  final class SyncDispatcher implements Dispatcher {
    final EventHandler<Event> h = this::on;
    public EventHandler<Event> getEventHandler() { return h; }
    public void register(Class<? extends Enum> c, EventHandler e) { }
    void on(Event ev) {
      if (ev instanceof RMNodeResourceUpdateEvent) { central.add(ev); return; }
      if (!editing && ev instanceof ContainerPreemptEvent && draining(((ContainerPreemptEvent) ev).getContainer())) {
        central.add(ev);
        return;
      }
      if (ev instanceof RMNodeCleanContainerEvent) {
        RMNodeCleanContainerEvent e = (RMNodeCleanContainerEvent) ev;
        Con c = cons.get(e.getContainerId());
        Nm nm = nodes.get(e.getNodeId().getHost());
        if (nm == null) return;
        if (c != null) nm.toLaunch.remove(c);
        if (c == null || !c.launched) return;
        for (Object[] x : nm.toComplete) if (x[0].equals(e.getContainerId())) return;
        nm.toComplete.add(new Object[] {e.getContainerId(), optCleanup, c});
      } else if (ev instanceof RMAppEvent && ((RMAppEvent) ev).getType() == RMAppEventType.APP_REJECTED) {
        RMAppEvent e = (RMAppEvent) ev;
        reject(byId.get(e.getApplicationId()), e.getDiagnosticMsg());
      } else if (ev instanceof ContainerPreemptEvent) {
        ContainerPreemptEvent e = (ContainerPreemptEvent) ev;
        Con c = cons.get(e.getContainer().getContainerId());
        String op = e.getType() == SchedulerEventType.MARK_CONTAINER_FOR_PREEMPTION ? "mark"
            : e.getType() == SchedulerEventType.MARK_CONTAINER_FOR_KILLABLE ? "kill" : e.getType().toString();
        ObjectNode o = rec().put("op", op);
        if (c != null) o.put("app", c.app.name).put("n", c.n).put("node", c.node);
        else o.put("cid", e.getContainer().getContainerId().getContainerId());
        // A node that was recommissioned kills what it has too much of: not the policy's doing.
        if (editing) preempted.add(o);
        toScheduler.add(e);
      } else if (ev instanceof SchedulerEvent) toScheduler.add((SchedulerEvent) ev);
    }
  }

  // The scheduler's "file" store reads capacity-scheduler.xml through this, from memory.
  final class MemoryFile extends ConfigurationProvider {
    @Override public InputStream getConfigurationInputStream(Configuration c, String name) throws IOException {
      if (!YarnConfiguration.CS_CONFIGURATION_FILE.equals(name)) return null;
      Configuration x = new Configuration(false);
      csProps.forEach(x::set);
      ByteArrayOutputStream b = new ByteArrayOutputStream();
      x.writeXml(b);
      return new ByteArrayInputStream(b.toByteArray());
    }
    @Override public void initInternal(Configuration c) { }
    @Override public void closeInternal() { }
  }

  static Field field(Class<?> c, String n) throws Exception {
    Field f = c.getDeclaredField(n);
    f.setAccessible(true);
    return f;
  }

  // What the RM sends itself while a node is decommissioned gracefully, in the order in which its dispatcher has it.
  final ArrayDeque<Event> central = new ArrayDeque<>();
  boolean editing;                       // the preemption policy sends its own, which wait for no heartbeat
  boolean draining(RMContainer c) {
    Nm nm = nodes.get(c.getContainer().getNodeId().getHost());
    return nm != null && nm.draining;
  }
  void dispatch() {
    while (!central.isEmpty()) {
      Event ev = central.poll();
      if (ev instanceof RMNodeResourceUpdateEvent) {        // RMNodeImpl.UpdateNodeResourceWhenRunningTransition
        RMNodeResourceUpdateEvent e = (RMNodeResourceUpdateEvent) ev;
        Nm nm = nodes.get(e.getNodeId().getHost());
        nm.total = e.getResourceOption().getResource();
        central.add(new NodeResourceUpdateSchedulerEvent(nm.rmNode, e.getResourceOption()));
      } else cs.handle((SchedulerEvent) ev);
    }
  }

  ObjectNode rec() { return M.createObjectNode().put("t", now); }

  void reject(App a, String why) {
    if (a == null || a.dead) return;
    a.dead = true;
    rejected.add(rec().put("app", a.name).put("why", why));
  }

  // Called by RMContainerImpl inside its START transition: a container was assigned.
  void onAllocated(RMContainer rm) {
    try { field(RMContainerImpl.class, "creationTime").setLong(rm, now); } catch (Exception x) { throw new RuntimeException(x); }
    App a = byId.get(rm.getApplicationAttemptId().getApplicationId());
    Con c = new Con();
    c.app = a; c.rm = rm; c.id = rm.getContainerId(); c.n = a.cons.size() + 1;
    c.node = rm.getContainer().getNodeId().getHost();
    a.cons.add(c); a.live++;
    cons.put(c.id, c);
    if (a.managed && a.master == null && a.amAt < 0) { c.am = true; a.amAt = now; }
    fresh.add(a);
    c.queue = cs.getApplicationAttempt(a.attempt).getCSLeafQueue().getQueuePath();
    Resource r = rm.getContainer().getResource();
    ObjectNode o = rec().put("app", a.name).put("n", c.n).put("cid", c.id.getContainerId())
        .put("node", c.node).put("memory_mb", r.getMemorySize()).put("vcores", r.getVirtualCores())
        .put("priority", rm.getContainer().getPriority().getPriority())
        .put("queue", c.queue);
    if (c.am) o.put("am", true);
    if (everReserved.contains(c.id)) o.put("from_reservation", true);
    assignments.add(o);
    Long d = a.durations.get(rm.getContainer().getPriority().getPriority());
    if (d != null && !c.am) later(now + d, () -> finish(a, c.n, true));
  }

  void onFinished(RMContainer rm) {
    Con c = cons.get(rm.getContainerId());
    if (c == null || c.done) return;
    c.done = true; c.app.live--;
    String diag = String.valueOf(rm.getDiagnosticsInfo()), why = diag;
    if (rm.getContainerExitStatus() == ContainerExitStatus.SUCCESS) why = "finished";
    else if (diag.equals(SchedulerUtils.PREEMPTED_CONTAINER)) why = "preempted";
    else if (diag.equals(SchedulerUtils.RELEASED_CONTAINER)) why = "released";
    else if (diag.equals(SchedulerUtils.LOST_CONTAINER)) why = "lost";
    else if (diag.equals(SchedulerUtils.COMPLETED_APPLICATION)) why = "app_end";
    completed.add(rec().put("app", c.app.name).put("n", c.n).put("node", c.node).put("why", why));
    maybeEnd.add(c.app);
    if (c.am && c.app.onAmKilled != null && !c.app.dead
        && (why.equals("lost") || why.equals("preempted"))) {
      App a = c.app; String what = a.onAmKilled;
      later(now, () -> { if (what.equals("restart")) restart(a); else end(a); });
    }
  }

  void later(long t, Runnable r) { due.add(new Due(t, dueSeq++, r)); }

  // ---- set-up --------------------------------------------------------------
  static Map<String, String> props(JsonNode n) throws IOException {
    Map<String, String> p = new LinkedHashMap<>();
    if (n.isTextual()) {
      Configuration c = new Configuration(false);
      c.addResource(new ByteArrayInputStream(n.asText().trim().getBytes(StandardCharsets.UTF_8)));
      for (Map.Entry<String, String> e : c) p.put(e.getKey(), e.getValue());
    } else n.fields().forEachRemaining(e -> {
      String k = e.getKey().startsWith("yarn.") ? e.getKey() : PREFIX + e.getKey();
      p.put(k, e.getValue().isNull() ? null : e.getValue().asText());
    });
    return p;
  }

  void setUp(JsonNode s) throws Exception {
    JsonNode opt = s.path("options");
    optAcquire = opt.path("acquire").asText("auto");
    optLaunch = opt.path("launch").asText("next_heartbeat");
    optShares = opt.path("shares").asText("all");
    if (opt.path("headrooms").asText("none").equals("all")) headrooms = out.putArray("headrooms");
    optCleanup = opt.path("cleanup_heartbeats").asInt(1);
    nodePort = opt.path("node_port").asInt(45454);
    clusterTs = opt.path("cluster_timestamp").asLong(0);
    boolean maxByNodes = opt.path("max_allocation").asText("nodes").equals("nodes");
    SystemClock.source = () -> now;

    QueueMetrics.clearQueueMetrics();
    DefaultMetricsSystem.setMiniClusterMode(true);
    conf = new YarnConfiguration();
    conf.setClass(YarnConfiguration.RM_SCHEDULER, CapacityScheduler.class, ResourceScheduler.class);
    csProps.put(PREFIX + "root.queues", "default");
    csProps.put(PREFIX + "root.default.capacity", "100");
    if (s.has("capacity")) { csProps.clear(); csProps.putAll(props(s.get("capacity"))); }
    s.path("conf").fields().forEachRemaining(e -> {
      // Queues must see that preemption is on, but no monitor thread may come of it.
      if (e.getKey().equals(YarnConfiguration.RM_SCHEDULER_ENABLE_MONITORS)) csProps.put(e.getKey(), e.getValue().asText());
      else conf.set(e.getKey(), e.getValue().asText());
    });
    csProps.put(CapacitySchedulerConfiguration.SCHEDULE_ASYNCHRONOUSLY_ENABLE, "false");
    conf.set(YarnConfiguration.SCHEDULER_CONFIGURATION_STORE_CLASS, YarnConfiguration.FILE_CONFIGURATION_STORE);
    conf.setBoolean(YarnConfiguration.APPLICATION_HISTORY_SAVE_NON_AM_CONTAINER_META_INFO, true);
    conf.setLong(YarnConfiguration.RM_WORK_PRESERVING_RECOVERY_SCHEDULING_WAIT_MS, Long.MAX_VALUE / 4);

    // A static of YARN that keeps the first script's minimum and maximum allocation otherwise.
    ResourceUtils.resetResourceTypes(conf);

    SyncDispatcher disp = new SyncDispatcher();
    ContainerAllocationExpirer exp = new ContainerAllocationExpirer(disp) {
      @Override public synchronized void register(AllocationExpirationInfo i) { }
      @Override public synchronized void unregister(AllocationExpirationInfo i) { }
    };
    RMContainerTokenSecretManager ct = new RMContainerTokenSecretManager(conf) {
      @Override public org.apache.hadoop.yarn.api.records.Token createContainerToken(ContainerId a, int b, NodeId c,
          String d, Resource e, Priority f, long g, LogAggregationContext h, String i, ContainerType j,
          ExecutionType k, long l, Set<String> m) { return null; }
    };
    NMTokenSecretManagerInRM nt = new NMTokenSecretManagerInRM(conf) {
      @Override public NMToken createAndGetNMToken(String u, ApplicationAttemptId a, Container c) { return null; }
    };
    ctx = new RMContextImpl(disp, exp, null, null, null, null, ct, nt, null);
    ctx.setYarnConfiguration(conf);
    ctx.setConfigurationProvider(new MemoryFile());
    ctx.setRMApplicationHistoryWriter(new RMApplicationHistoryWriter());
    ctx.setSystemMetricsPublisher(stub(SystemMetricsPublisher.class, (m, a) -> {
      if (m.equals("containerCreated")) onAllocated((RMContainer) a[0]);
      else if (m.equals("containerFinished")) onFinished((RMContainer) a[0]);
      return NONE;
    }));
    ctx.setAllocationTagsManager(new AllocationTagsManager(ctx));
    ctx.setPlacementConstraintManager(new MemoryPlacementConstraintManager());
    ctx.setQueuePlacementManager(new PlacementManager());
    RMNodeLabelsManager labels = new RMNodeLabelsManager();
    labels.init(conf);                   // labels off: only keeps the cluster's resource
    ctx.setNodeLabelManager(labels);

    cs = new CapacityScheduler();
    cs.setConf(conf);
    ctx.setScheduler(cs);
    cs.setRMContext(ctx);
    cs.init(conf);                       // never start(): no thread of it runs
    cs.getNodeTracker().setForceConfiguredMaxAllocation(!maxByNodes);
    activeUsers = UsersManager.class.getDeclaredField("activeUsersSet");
    activeUsers.setAccessible(true);

    for (JsonNode n : s.path("nodes")) {
      Nm nm = new Nm();
      nm.name = n.get("name").asText();
      NodeId id = NodeId.newInstance(nm.name, nodePort);
      nm.own = Resource.newInstance(n.get("memory_mb").asLong(), n.get("vcores").asInt());
      nm.total = nm.own;
      String rack = n.path("rack").asText("/default-rack");
      nm.rmNode = stub(RMNode.class, (m, a) -> {
        switch (m) {
          case "getNodeID": return id;
          case "getHostName": return nm.name;
          case "getCommandPort": return nodePort;
          case "getHttpPort": return 8042;
          case "getNodeAddress": return nm.name + ":" + nodePort;
          case "getHttpAddress": return nm.name + ":8042";
          case "getTotalCapability": return nm.total;
          case "getRackName": return rack;
          case "getState": return nm.draining ? NodeState.DECOMMISSIONING : NodeState.RUNNING;
          case "getRMContext": return ctx;
          case "pullContainerUpdates": { List<UpdatedContainerInfo> u = nm.updates; nm.updates = new ArrayList<>(); return u; }
          default: return NONE;
        }
      });
      nodes.put(nm.name, nm);
    }
    for (JsonNode e : s.path("events"))
      if (e.has("ask")) pendingAsks.merge(e.get("ask").asText(), 1, Integer::sum);
  }

  // ---- helpers for events --------------------------------------------------
  void skip(ObjectNode ev, String why) { ObjectNode o = rec(); o.put("why", why); o.set("event", ev); skipped.add(o); }
  ObjectNode base() { return M.createObjectNode().put("t", now); }
  void log(ObjectNode o) { if (explicit != null) explicit.add(o); }

  Allocation callAllocate(App a, List<ResourceRequest> asks, List<ContainerId> rel) {
    Allocation al = cs.allocate(a.attempt, asks, null, rel, null, null, new ContainerUpdates());
    pulled(a, al);
    return al;
  }

  // The headroom that an AM is told by its own heartbeat.
  void told(App a, Allocation al) {
    if (headrooms == null) return;
    ObjectNode o = rec().put("app", a.name);
    res(o, "headroom", al.getResourceLimit());
    headrooms.add(o);
  }

  void pulled(App a, Allocation al) {
    for (Container k : al.getContainers()) {
      Con c = cons.get(k.getId());
      c.acquired = true;
      if (!c.done && optLaunch.equals("next_heartbeat")) nodes.get(c.node).toLaunch.add(c);
      if (a.managed && a.master == null) {
        a.master = k;
        c.am = true;
        ((RMContainerImpl) c.rm).setAMContainer(true);
        releaseHeld(a);
      }
    }
  }

  void releaseHeld(App a) {
    for (ObjectNode h : a.held) {
      long t = Math.max(now, a.amAt + h.get("after_am_ms").asLong());
      later(t, () -> ask(a, h));
    }
    a.held.clear();
  }

  ResourceRequest rr(JsonNode n) {
    ResourceRequest r = Records.newRecord(ResourceRequest.class);
    r.setPriority(Priority.newInstance(n.path("priority").asInt(1)));
    r.setResourceName(ResourceRequest.ANY);
    r.setCapability(Resource.newInstance(n.get("memory_mb").asLong(), n.path("vcores").asInt(1)));
    r.setNumContainers(n.path("count").asInt(1));
    r.setRelaxLocality(true);
    r.setNodeLabelExpression("");
    if (n.has("alloc_id")) r.setAllocationRequestId(n.get("alloc_id").asLong());
    return r;
  }

  void newAttempt(App a, boolean askForAm) {
    a.attempt = ApplicationAttemptId.newInstance(a.id, ++a.attemptNo);
    a.master = null; a.amAt = -1;
    RMAppAttemptMetrics metrics = new RMAppAttemptMetrics(a.attempt, ctx);
    ApplicationAttemptId at = a.attempt;
    a.rmAttempt = stub(RMAppAttempt.class, (m, x) -> {
      switch (m) {
        case "getAppAttemptId": return at;
        case "getMasterContainer": return a.master;
        case "getRMAppAttemptMetrics": return metrics;
        case "getSubmissionContext": return a.rmApp.getApplicationSubmissionContext();
        default: return NONE;
      }
    });
    inactive.add(a);
    cs.handle(new AppAttemptAddedSchedulerEvent(a.attempt, false));
    if (askForAm) {
      ObjectNode r = M.createObjectNode();
      r.put("priority", 0).put("count", 1).put("memory_mb", a.amRes.getMemorySize()).put("vcores", a.amRes.getVirtualCores());
      callAllocate(a, new ArrayList<>(List.of(rr(r))), new ArrayList<>());
    }
  }

  void submit(ObjectNode e) {
    App a = new App();
    a.name = e.get("app").asText(); a.queue = known(e.get("queue").asText()); a.user = e.path("user").asText("u");
    a.id = ApplicationId.newInstance(clusterTs, e.has("id") ? e.get("id").asInt() : appSeq + 1);
    if (apps.containsKey(a.name)) { skip(e, "name in use"); return; }
    appSeq = Math.max(appSeq + 1, a.id.getId());
    a.managed = e.has("am") || e.path("managed").asBoolean(false);
    a.autoEnd = e.path("auto_end").asBoolean(false);
    a.onAmKilled = e.has("on_am_killed") ? e.get("on_am_killed").asText() : null;
    a.asksToCome = pendingAsks.getOrDefault(a.name, 0);
    apps.put(a.name, a); byId.put(a.id, a);
    ApplicationSubmissionContext asc = Records.newRecord(ApplicationSubmissionContext.class);
    asc.setApplicationId(a.id); asc.setQueue(a.queue); asc.setUnmanagedAM(!a.managed);
    List<ResourceRequest> amReqs = null;
    if (e.has("am")) {
      // RMAppManager normalises the AM's request before the scheduler sees it.
      a.amRes = cs.getNormalizedResource(
          Resource.newInstance(e.get("am").get("memory_mb").asLong(), e.get("am").path("vcores").asInt(1)),
          cs.getMaximumResourceCapability(a.queue));
      ObjectNode r = M.createObjectNode();
      r.put("priority", 0).put("memory_mb", a.amRes.getMemorySize()).put("vcores", a.amRes.getVirtualCores());
      amReqs = List.of(rr(r));
    }
    List<ResourceRequest> amr = amReqs;
    a.rmApp = stub(RMApp.class, (m, x) -> {
      switch (m) {
        case "getApplicationId": return a.id;
        case "getApplicationSubmissionContext": return asc;
        case "getCurrentAppAttempt": return a.rmAttempt;
        case "getAMResourceRequests": return amr;
        case "getUser": return a.user;
        case "getQueue": return a.queue;
        default: return NONE;
      }
    });
    ctx.getRMApps().put(a.id, a.rmApp);
    ObjectNode o = base(); o.put("app", a.name).put("queue", a.queue).put("user", a.user);
    for (String k : List.of("id", "am", "managed", "priority")) if (e.has(k)) o.set(k, e.get(k));
    log(o);
    Priority prio;
    try {
      prio = cs.checkAndGetApplicationPriority(e.has("priority") ? Priority.newInstance(e.get("priority").asInt()) : null,
          UserGroupInformation.createRemoteUser(a.user), a.queue, a.id);
    } catch (YarnException x) { reject(a, x.getMessage()); return; }
    asc.setPriority(prio);
    cs.handle(new AppAddedSchedulerEvent(a.user, asc, false, prio, null));
    if (!a.dead) newAttempt(a, a.amRes != null);
  }

  void ask(App a, ObjectNode e) {
    if (a.dead) { a.asksToCome--; skip(e, "app gone"); return; }
    if (e.has("after_am_ms") && a.managed && a.amAt < 0) { a.held.add(e); return; }
    if (e.has("after_am_ms") && a.managed && now < a.amAt + e.get("after_am_ms").asLong()) {
      later(a.amAt + e.get("after_am_ms").asLong(), () -> ask(a, e)); return;
    }
    a.asksToCome--;
    List<ResourceRequest> l = new ArrayList<>();
    ObjectNode o = base(); o.put("ask", a.name);
    if (e.has("requests")) {
      o.set("requests", e.get("requests"));
      for (JsonNode r : e.get("requests")) { l.add(rr(r)); dur(a, r); }
    } else {
      for (String k : List.of("priority", "count", "memory_mb", "vcores", "alloc_id")) if (e.has(k)) o.set(k, e.get(k));
      l.add(rr(e)); dur(a, e);
    }
    log(o);
    told(a, callAllocate(a, l, new ArrayList<>()));
  }
  void dur(App a, JsonNode r) { if (r.has("duration_ms")) a.durations.put(r.path("priority").asInt(1), r.get("duration_ms").asLong()); }

  void finish(App a, int n, boolean auto) {
    ObjectNode o = base(); o.putObject("finish").put("app", a.name).put("n", n);
    if (n < 1 || n > a.cons.size()) { skip(o, "no such container"); return; }
    Con c = a.cons.get(n - 1);
    if (c.done || c.finishing) { if (!auto) skip(o, "container already gone"); return; }
    if (!c.acquired) { skip(o, "container not yet acquired"); return; }
    log(o);
    c.finishing = true;
    Nm nm = nodes.get(c.node);
    nm.toLaunch.remove(c);
    nm.toComplete.add(new Object[] {c.id, 1, c});
  }

  void end(App a) {
    if (a.dead) return;
    ObjectNode o = base(); o.put("end", a.name); log(o);
    a.dead = true;
    cs.handle(new AppAttemptRemovedSchedulerEvent(a.attempt, RMAppAttemptState.FINISHED, false));
    cs.handle(new AppRemovedSchedulerEvent(a.id, RMAppState.FINISHED));
    ctx.getRMApps().remove(a.id);
  }

  void restart(App a) {
    if (a.dead) return;
    ObjectNode o = base(); o.put("restart", a.name); log(o);
    cs.handle(new AppAttemptRemovedSchedulerEvent(a.attempt, RMAppAttemptState.FAILED, false));
    newAttempt(a, a.amRes != null);
  }

  void reconfigure(JsonNode change) throws Exception {
    Map<String, String> old = csProps, p = props(change), next = new LinkedHashMap<>();
    if (!change.isTextual()) next.putAll(old);           // XML: the whole file; dict: changes
    p.forEach((k, v) -> { if (v == null) next.remove(k); else next.put(k, v); });
    if (change.isTextual() && old.containsKey(YarnConfiguration.RM_SCHEDULER_ENABLE_MONITORS))
      next.putIfAbsent(YarnConfiguration.RM_SCHEDULER_ENABLE_MONITORS, old.get(YarnConfiguration.RM_SCHEDULER_ENABLE_MONITORS));
    next.put(CapacitySchedulerConfiguration.SCHEDULE_ASYNCHRONOUSLY_ENABLE, "false");
    csProps = next;
    try { cs.reinitialize(conf, ctx); }
    catch (Throwable x) { csProps = old; throw x; }
  }

  // ---- what the scheduler has computed ---------------------------------------
  static void res(ObjectNode x, String k, Resource r) { x.put(k + "_mb", r.getMemorySize()).put(k + "_vcores", r.getVirtualCores()); }

  // Reads only: asking the queue for its limits by its public methods would refresh
  // caches and so could change later decisions.
  void queueShares(CSQueue q, ObjectNode o) throws Exception {
    ObjectNode x = o.putObject(q.getQueuePath());
    QueueCapacities c = q.getQueueCapacities();
    x.put("capacity", c.getCapacity()).put("abs", c.getAbsoluteCapacity())
        .put("max", c.getMaximumCapacity()).put("abs_max", c.getAbsoluteMaximumCapacity())
        .put("used", c.getUsedCapacity()).put("abs_used", c.getAbsoluteUsedCapacity());
    if (c.getWeight() != -1f) x.put("weight", c.getWeight()).put("norm_weight", c.getNormalizedWeight());
    res(x, "eff", q.getQueueResourceQuotas().getEffectiveMinResource());
    res(x, "eff_max", q.getQueueResourceQuotas().getEffectiveMaxResource());
    ResourceUsage u = q.getQueueResourceUsage();
    res(x, "used", u.getUsed()); res(x, "reserved", u.getReserved()); res(x, "pending", u.getPending());
    if (q.getState() != QueueState.RUNNING) x.put("state", q.getState().toString());
    if (q instanceof AbstractLeafQueue) {
      AbstractLeafQueue l = (AbstractLeafQueue) q;
      UsersManager um = l.getUsersManager();
      res(x, "am_limit", u.getAMLimit()); res(x, "am_used", u.getAMUsed());
      res(x, "user_am_limit", u.getUserAMLimit());
      x.put("max_apps", l.getMaxApplications()).put("max_apps_per_user", l.getMaxApplicationsPerUser())
          .put("active", l.getNumActiveApplications()).put("pending_apps", l.getNumPendingApplications());
      ObjectNode us = x.putObject("users");
      Set<?> act = (Set<?>) activeUsers.get(um);
      Resource cluster = cs.getClusterResource();
      for (String n : new TreeSet<>(um.getUsers().keySet())) {
        UsersManager.User w = um.getUser(n);
        ObjectNode y = us.putObject(n);
        y.put("active", act.contains(n));
        res(y, "used", w.getUsed()); res(y, "am_used", w.getConsumedAMResources());
        Resource lim = um.computeUserLimit(n, cluster, RMNodeLabelsManager.NO_LABEL,
            SchedulingMode.RESPECT_PARTITION_EXCLUSIVITY, true);
        res(y, "limit", Resources.multiplyAndNormalizeDown(cs.getResourceCalculator(), lim, w.getWeight(), l.getMinimumAllocation()));
        res(y, "last_limit", w.getUserResourceLimit());
        y.put("active_apps", w.getActiveApplications()).put("pending_apps", w.getPendingApplications());
      }
    } else {
      ArrayNode k = x.putArray("children");         // in the order that breaks ties
      for (CSQueue ch : q.getChildQueues()) k.add(ch.getQueueShortName());
      List<CSQueue> kids = new ArrayList<>(q.getChildQueues());
      kids.sort(Comparator.comparing(CSQueue::getQueuePath));
      for (CSQueue ch : kids) queueShares(ch, o);
    }
  }

  boolean isActive(FiCaSchedulerApp f) {
    if (!f.isRunnable()) return false;
    for (FiCaSchedulerApp p : f.getCSLeafQueue().getPendingAppsOrderingPolicy().getSchedulableEntities()) if (p == f) return false;
    return true;      // not by contains(): set_priority can leave an app in the wrong place of that sorted set
  }

  void recordShares() throws Exception {
    if (optShares.equals("none")) return;
    ObjectNode o = rec();
    queueShares(cs.getRootQueue(), o.putObject("queues"));
    if (optShares.equals("all")) {
      ObjectNode as = o.putObject("apps");
      for (App a : apps.values()) {
        if (a.dead) continue;
        FiCaSchedulerApp f = cs.getApplicationAttempt(a.attempt);
        ObjectNode x = as.putObject(a.name);
        ResourceUsage u = f.getAppAttemptResourceUsage();
        res(x, "used", u.getUsed()); res(x, "reserved", u.getReserved()); res(x, "pending", u.getPending());
        x.put("active", isActive(f)).put("priority", f.getPriority().getPriority());
      }
    }
    shares.add(o);
  }

  // Sums that must hold whatever was decided.
  void check() {
    for (CSQueue q : cs.getCapacitySchedulerQueueManager().getQueues().values()) {
      Resource sum = Resource.newInstance(0, 0);
      if (q.getChildQueues() != null) for (CSQueue c : q.getChildQueues()) Resources.addTo(sum, c.getUsedResources());
      else {
        // Not the applications' own counters: those drift after an ask was resized that holds a reservation.
        for (Con c : cons.values())
          if (!c.done && c.queue.equals(q.getQueuePath())) Resources.addTo(sum, c.rm.getContainer().getResource());
        for (Nm nm : nodes.values())
          if (nm.reserved != null && cs.getApplicationAttempt(nm.reserved.getApplicationAttemptId()).getCSLeafQueue() == q)
            Resources.addTo(sum, nm.reserved.getReservedResource());
      }
      if (!sum.equals(q.getUsedResources()))
        throw new IllegalStateException(q.getQueuePath() + " uses " + q.getUsedResources() + ", its parts " + sum);
    }
    for (Nm nm : nodes.values()) {
      FiCaSchedulerNode n = cs.getNode(nm.rmNode.getNodeID());
      if (n != null && (n.getUnallocatedResource().getMemorySize() < 0))
        throw new IllegalStateException(nm.name + " has " + n.getUnallocatedResource() + " left");
    }
  }

  void heartbeat(Nm nm) {
    List<ContainerStatus> launched = new ArrayList<>(), done = new ArrayList<>();
    for (Con c : nm.toLaunch) { launched.add(ContainerStatus.newInstance(c.id, ContainerState.RUNNING, "", 0)); c.launched = true; }
    nm.toLaunch.clear();
    for (Iterator<Object[]> it = nm.toComplete.iterator(); it.hasNext();) {
      Object[] x = it.next();
      int left = (Integer) x[1] - 1;
      x[1] = left;
      if (left > 0) continue;
      it.remove();
      done.add(ContainerStatus.newInstance((ContainerId) x[0], ContainerState.COMPLETE, "", 0));
    }
    if (!launched.isEmpty() || !done.isEmpty())
      nm.updates.add(new UpdatedContainerInfo(launched, done, new ArrayList<>()));
    cs.handle(new NodeUpdateSchedulerEvent(nm.rmNode));
    dispatch();
  }

  App live(ObjectNode e, String name) {
    App a = apps.get(name);
    if (a == null || a.dead) { skip(e, "no such app"); return null; }
    return a;
  }

  void run(ObjectNode e) throws Exception {
    App a;
    if (e.has("heartbeat")) {
      Nm nm = nodes.get(e.get("heartbeat").asText());
      if (nm == null || !nm.registered) { skip(e, "node not registered"); return; }
      log(e); heartbeat(nm);
    } else if (e.has("shares") || e.has("update")) { log(e); recordShares(); }
    else if (e.has("ask")) {
      a = apps.get(e.get("ask").asText());
      if (a == null) skip(e, "no such app"); else ask(a, e);
    } else if (e.has("app")) submit(e);
    else if (e.has("node")) {
      Nm nm = nodes.get(e.get("node").asText());
      if (nm == null || nm.registered) { skip(e, "unknown node or already registered"); return; }
      log(e);
      nm.draining = false; nm.total = nm.own;
      nm.registered = true; ctx.getRMNodes().put(nm.rmNode.getNodeID(), nm.rmNode);
      cs.handle(new NodeAddedSchedulerEvent(nm.rmNode));
    } else if (e.has("decommission")) {
      Nm nm = nodes.get(e.get("decommission").asText());
      if (nm == null || !nm.registered || nm.draining) { skip(e, "node not registered"); return; }
      log(e);
      nm.draining = true;
    } else if (e.has("resize")) {
      Nm nm = nodes.get(e.get("resize").asText());
      if (nm == null || !nm.registered) { skip(e, "node not registered"); return; }
      log(e);
      Resource to = Resource.newInstance(e.get("memory_mb").asLong(), e.get("vcores").asInt());
      ResourceOption option = ResourceOption.newInstance(to, nm.draining ? 0 : -1);
      nm.draining = false; nm.total = to;
      cs.handle(new NodeResourceUpdateSchedulerEvent(nm.rmNode, option));
      dispatch();
    } else if (e.has("lost")) {
      Nm nm = nodes.get(e.get("lost").asText());
      if (nm == null || !nm.registered) { skip(e, "node not registered"); return; }
      log(e);
      nm.registered = false;
      cs.handle(new NodeRemovedSchedulerEvent(nm.rmNode));
      ctx.getRMNodes().remove(nm.rmNode.getNodeID());
      nm.toLaunch.clear(); nm.toComplete.clear(); nm.updates.clear();
      recordShares();
    } else if (e.has("finish")) {
      a = apps.get(e.get("finish").get("app").asText());
      if (a == null) skip(e, "no such app"); else finish(a, e.get("finish").get("n").asInt(), false);
    } else if (e.has("release")) {
      a = apps.get(e.get("release").get("app").asText());
      int n = e.get("release").get("n").asInt();
      if (a == null || a.dead || n < 1 || n > a.cons.size()) { skip(e, "no such container"); return; }
      if (a.cons.get(n - 1).done) { skip(e, "container already gone"); return; }
      if (!a.cons.get(n - 1).acquired) { skip(e, "container not yet acquired"); return; }
      log(e);
      told(a, callAllocate(a, new ArrayList<>(), new ArrayList<>(List.of(a.cons.get(n - 1).id))));
    } else if (e.has("pull")) {
      if ((a = live(e, e.get("pull").asText())) == null) return;
      log(e); told(a, callAllocate(a, new ArrayList<>(), new ArrayList<>()));
    } else if (e.has("end")) {
      if ((a = live(e, e.get("end").asText())) != null) end(a);
    } else if (e.has("restart")) {
      if ((a = live(e, e.get("restart").asText())) != null) restart(a);
    } else if (e.has("set_priority")) {
      if ((a = live(e, e.get("set_priority").get("app").asText())) == null) return;
      log(e);
      Priority p = cs.checkAndGetApplicationPriority(Priority.newInstance(e.get("set_priority").get("value").asInt()),
          UserGroupInformation.createRemoteUser(a.user), a.queue, a.id);
      SchedulerApplication<FiCaSchedulerApp> sa = cs.getSchedulerApplications().get(a.id);
      // The rest of updateApplicationPriority is the state store's business.
      if (!sa.getPriority().equals(p)) {
        cs.getApplicationAttempt(a.attempt).getCSLeafQueue().updateApplicationPriority(sa, p);
        sa.setPriority(p);
      }
    } else if (e.has("reconfigure")) {
      log(e);
      try { reconfigure(e.get("reconfigure")); } finally { recordShares(); }
    } else if (e.has("preempt")) {
      log(e);
      if (preemptor == null) {
        preemptor = new ProportionalCapacityPreemptionPolicy();
        preemptor.init(conf, ctx, cs);
      }
      editing = true;
      try { preemptor.editSchedule(); } finally { editing = false; }
    } else if (e.has("check")) { log(e); check(); }
    else throw new IllegalArgumentException("unknown event " + e);
  }

  void after() {
    while (!toScheduler.isEmpty()) cs.handle(toScheduler.poll());
    // AM containers are always fetched at once (the RM itself does it); others if acquire=auto.
    for (App a : new ArrayList<>(fresh)) {
      if (a.dead) continue;
      if (optAcquire.equals("auto") || (a.managed && a.master == null)) callAllocate(a, new ArrayList<>(), new ArrayList<>());
    }
    fresh.clear();
    for (Nm nm : nodes.values()) {
      FiCaSchedulerNode n = cs.getNode(nm.rmNode.getNodeID());
      RMContainer r = n == null ? null : n.getReservedContainer();
      if (r == nm.reserved) continue;
      if (nm.reserved != null) reservation(nm, nm.reserved, "unreserve");
      if (r != null) { everReserved.add(r.getContainerId()); reservation(nm, r, "reserve"); }
      nm.reserved = r;
    }
    TreeMap<ApplicationId, App> begun = new TreeMap<>();
    for (Iterator<App> it = inactive.iterator(); it.hasNext();) {
      App a = it.next();
      FiCaSchedulerApp f = a.dead ? null : cs.getApplicationAttempt(a.attempt);
      if (a.dead) it.remove();
      else if (f != null && isActive(f)) { it.remove(); begun.put(a.id, a); }
    }
    for (App a : begun.values()) {
      FiCaSchedulerApp f = cs.getApplicationAttempt(a.attempt);
      ObjectNode o = rec().put("app", a.name).put("attempt", a.attemptNo).put("queue", f.getCSLeafQueue().getQueuePath());
      res(o, "am", f.getAMResource(RMNodeLabelsManager.NO_LABEL));
      activations.add(o);
    }
    for (App a : maybeEnd) {
      if (!a.autoEnd || a.dead || a.endQueued || a.asksToCome > 0 || !a.held.isEmpty()) continue;
      if (a.live > (a.master != null ? 1 : 0)) continue;
      FiCaSchedulerApp f = cs.getApplicationAttempt(a.attempt);
      int left = 0;
      for (SchedulerRequestKey k : f.getSchedulerKeys()) left += f.getOutstandingAsksCount(k);
      if (left > 0) continue;
      a.endQueued = true;
      later(now, () -> end(a));
    }
    maybeEnd.clear();
  }
  void reservation(Nm nm, RMContainer r, String op) {
    Resource x = r.getReservedResource();
    reserved.add(rec().put("op", op).put("app", byId.get(r.getApplicationAttemptId().getApplicationId()).name)
        .put("node", nm.name).put("memory_mb", x.getMemorySize()).put("vcores", x.getVirtualCores())
        .put("cid", r.getContainerId().getContainerId()));
  }

  void guarded(ObjectNode e, java.util.concurrent.Callable<Void> c) {
    try { c.call(); } catch (Throwable x) {
      Throwable y = x instanceof InvocationTargetException ? x.getCause() : x;
      ObjectNode o = rec(); o.put("error", y.toString()); if (e != null) o.set("event", e);
      errors.add(o);
      if (System.getenv("ORACLE_TRACE") != null) y.printStackTrace();
    }
    after();
  }

  void drainDue(long upTo) {
    while (!due.isEmpty() && due.peek().t <= upTo) {
      Due d = due.poll();
      now = Math.max(now, d.t);
      guarded(null, () -> { d.r.run(); return null; });
    }
  }

  ObjectNode play(JsonNode s) throws Exception {
    long t0 = System.nanoTime();
    setUp(s);
    long t1 = System.nanoTime();
    int k = 0;
    for (JsonNode ev : s.path("events")) {
      ObjectNode e = (ObjectNode) ev;
      long t = e.get("t").asLong();
      if (t < now) throw new IllegalArgumentException("event " + k + " goes back in time: " + e);
      drainDue(t);
      now = t;
      guarded(e, () -> { run(e); return null; });
      drainDue(t);
      k++;
    }
    long t2 = System.nanoTime();
    out.putObject("meta").put("events", k).put("assignments", assignments.size());
    System.err.printf("setup %.0f ms, run %.0f ms, %d events, %d assignments, %.0f assignments/s%n",
        (t1 - t0) / 1e6, (t2 - t1) / 1e6, k, assignments.size(), assignments.size() / ((t2 - t1) / 1e9));
    return out;
  }

  // One record per line, so that outputs can be compared with diff.
  static void write(ObjectNode o, OutputStream os) throws IOException {
    PrintStream p = new PrintStream(new BufferedOutputStream(os, 1 << 16), false, "UTF-8");
    p.print("{");
    String sep = "\n";
    for (Iterator<Map.Entry<String, JsonNode>> it = o.fields(); it.hasNext();) {
      Map.Entry<String, JsonNode> e = it.next();
      p.print(sep + M.writeValueAsString(e.getKey()) + ": ");
      sep = ",\n";
      if (e.getValue().isArray()) {
        p.print("[");
        String s2 = "\n ";
        for (JsonNode x : e.getValue()) { p.print(s2 + M.writeValueAsString(x)); s2 = ",\n "; }
        p.print("]");
      } else p.print(M.writeValueAsString(e.getValue()));
    }
    p.print("\n}\n");
    p.flush();
  }

  // What a queue is called by who submits to it.
  static String known(String path) { return path; }

  // Oracle IN EXPLICIT OUT [IN EXPLICIT OUT ...]: plays each script; EXPLICIT takes it as executed, base events only.
  public static void main(String[] argv) {
    // The scheduler leaves a non-daemon timer thread behind.
    try { playAll(argv); System.exit(0); } catch (Throwable t) { t.printStackTrace(); System.exit(1); }
  }

  static void playAll(String[] argv) throws Exception {
    for (int j = 0; j + 2 < argv.length; j += 3) {
      JsonNode s = M.readTree(new File(argv[j]));
      Oracle o = new Oracle();
      o.explicit = M.createArrayNode();
      ObjectNode r = o.play(s);
      try (OutputStream f = new FileOutputStream(argv[j + 2])) { write(r, f); }
      ObjectNode full = M.createObjectNode();
      for (String key : List.of("conf", "options", "capacity", "nodes")) if (s.has(key)) full.set(key, s.get(key));
      full.set("events", o.explicit);
      try (OutputStream f = new FileOutputStream(argv[j + 1])) { write(full, f); }
    }
  }
}
