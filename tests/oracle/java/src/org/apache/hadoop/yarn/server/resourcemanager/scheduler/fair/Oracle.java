// Drives the real FairScheduler from a JSON script. It lives in the scheduler's
// package only to reach package-private members (preemption, dynamic queues).
package org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.*;
import java.lang.reflect.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.yarn.api.records.*;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.event.*;
import org.apache.hadoop.yarn.server.api.ContainerType;
import org.apache.hadoop.yarn.server.resourcemanager.*;
import org.apache.hadoop.yarn.server.resourcemanager.ahs.RMApplicationHistoryWriter;
import org.apache.hadoop.yarn.server.resourcemanager.metrics.SystemMetricsPublisher;
import org.apache.hadoop.yarn.server.resourcemanager.placement.*;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.*;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.*;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.*;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.AllocationExpirationInfo;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.*;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.*;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.constraint.AllocationTagsManager;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.*;
import org.apache.hadoop.yarn.server.resourcemanager.security.*;
import org.apache.hadoop.yarn.server.scheduler.SchedulerRequestKey;
import org.apache.hadoop.yarn.util.Clock;
import org.apache.hadoop.yarn.util.Records;
import org.apache.hadoop.yarn.util.resource.ResourceUtils;

public final class Oracle {
  static final ObjectMapper M = new ObjectMapper();

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
    App app; int n; RMContainer rm; ContainerId id; String node;
    boolean am, done, launched, acquired, finishing;
  }

  static final class Nm {
    String name; RMNode rmNode; boolean registered, draining; Resource total, own;
    final List<Con> toLaunch = new ArrayList<>();
    final List<Object[]> toComplete = new ArrayList<>();  // {ContainerId, heartbeats left, Con}
    List<UpdatedContainerInfo> updates = new ArrayList<>();
    RMContainer reserved;
  }

  // Kills come first among what is due at one instant, as they do before that instant's events: else the explicit form
  // of a script, which holds the others as events but no kills, would not be the same script.
  static final class Due implements Comparable<Due> {
    final long t, seq; final boolean kill; final Runnable r;
    Due(long t, boolean kill, long seq, Runnable r) { this.t = t; this.kill = kill; this.seq = seq; this.r = r; }
    public int compareTo(Due o) {
      if (t != o.t) return Long.compare(t, o.t);
      return kill != o.kill ? (kill ? -1 : 1) : Long.compare(seq, o.seq);
    }
  }

  // ---- state ---------------------------------------------------------------
  /** Told the time when it has moved on and after whatever happened at it; for policies that keep accounts. */
  public static java.util.function.LongConsumer onTime = t -> {};
  long now = 0, dueSeq = 0;
  final PriorityQueue<Due> due = new PriorityQueue<>();
  final Map<String, App> apps = new LinkedHashMap<>();
  final Map<ApplicationId, App> byId = new HashMap<>();
  final Map<String, Nm> nodes = new LinkedHashMap<>();
  final Map<ContainerId, Con> cons = new HashMap<>();
  final Set<ContainerId> everReserved = new HashSet<>();
  final LinkedHashSet<App> fresh = new LinkedHashSet<>();     // got containers in this event
  final LinkedHashSet<App> maybeEnd = new LinkedHashSet<>();
  final ObjectNode out = M.createObjectNode();
  final ArrayNode assignments = out.putArray("assignments"), shares = out.putArray("shares"),
      preempted = out.putArray("preempted"), reserved = out.putArray("reserved"),
      completed = out.putArray("completed"), rejected = out.putArray("rejected"),
      skipped = out.putArray("skipped"), errors = out.putArray("errors");
  ArrayNode explicit;               // the base events as executed
  FairScheduler fs;
  RMContextImpl ctx;
  Configuration conf;
  Path allocFile;
  String optAcquire, optLaunch, optShares;
  ArrayNode headrooms;                // null unless the script asks for them
  int optCleanup, nodePort;
  long clusterTs;
  int appSeq = 0;
  Object loader;
  Method reloadAllocations, identify;
  Thread preemptor;
  long warnMs, nextStarvationDelayMs;
  PriorityQueue<FSAppAttempt> unused;
  java.util.concurrent.PriorityBlockingQueue<FSAppAttempt> starvedQueue;
  Object starvedHolder; Field beingProcessed;

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
  static Field field(Class<?> c, String n) throws Exception {
    for (Class<?> k = c; k != null; k = k.getSuperclass()) {
      try { Field f = k.getDeclaredField(n); f.setAccessible(true); return f; }
      catch (NoSuchFieldException e) { /* go up */ }
    }
    throw new NoSuchFieldException(n);
  }

  final class SyncDispatcher implements Dispatcher {
    final EventHandler<Event> h = this::on;
    public EventHandler<Event> getEventHandler() { return h; }
    public void register(Class<? extends Enum> c, EventHandler e) { }
    void on(Event ev) {
      if (ev instanceof RMNodeResourceUpdateEvent) { central.add(ev); return; }
      if (ev instanceof ContainerPreemptEvent && draining(((ContainerPreemptEvent) ev).getContainer())) {
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
        App a = byId.get(e.getApplicationId());
        a.dead = true;
        rejected.add(rec().put("app", a.name).put("why", e.getDiagnosticMsg()));
      }
    }
  }

  // What the RM sends itself while a node is decommissioned gracefully, in the order in which its dispatcher has it.
  final ArrayDeque<Event> central = new ArrayDeque<>();
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
      } else fs.handle((SchedulerEvent) ev);
    }
  }

  ObjectNode rec() { return M.createObjectNode().put("t", now); }

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
    Resource r = rm.getContainer().getResource();
    ObjectNode o = rec().put("app", a.name).put("n", c.n).put("cid", c.id.getContainerId())
        .put("node", c.node).put("memory_mb", r.getMemorySize()).put("vcores", r.getVirtualCores())
        .put("priority", rm.getContainer().getPriority().getPriority());
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

  void later(long t, Runnable r) { due.add(new Due(t, false, dueSeq++, r)); }

  // ---- set-up --------------------------------------------------------------
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

    // Smallest and largest allocation are the resource types' (static, read from configuration files: here none).
    if (opt.path("resource_types").asText("files").equals("conf")) {
      Configuration types = new YarnConfiguration();
      s.path("conf").fields().forEachRemaining(e -> types.set(e.getKey(), e.getValue().asText()));
      ResourceUtils.resetResourceTypes(types);
    } else {
      ResourceUtils.resetResourceTypes();
    }
    QueueMetrics.clearQueueMetrics();
    DefaultMetricsSystem.setMiniClusterMode(true);
    conf = new YarnConfiguration();
    conf.setClass(YarnConfiguration.RM_SCHEDULER, FairScheduler.class, ResourceScheduler.class);
    s.path("conf").fields().forEachRemaining(e -> conf.set(e.getKey(), e.getValue().asText()));
    allocFile = Files.createTempFile("fs-alloc", ".xml");
    writeAllocations(s.path("allocations").asText("<allocations/>"));
    conf.set(FairSchedulerConfiguration.ALLOCATION_FILE, allocFile.toString());
    conf.setBoolean(FairSchedulerConfiguration.CONTINUOUS_SCHEDULING_ENABLED, false);
    conf.setBoolean(YarnConfiguration.APPLICATION_HISTORY_SAVE_NON_AM_CONTAINER_META_INFO, true);
    conf.setLong(YarnConfiguration.RM_WORK_PRESERVING_RECOVERY_SCHEDULING_WAIT_MS, Long.MAX_VALUE / 4);

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
    // Labels are off; an RM has a manager all the same, which is told of nodes that change.
    ctx.setNodeLabelManager(new org.apache.hadoop.yarn.server.resourcemanager.nodelabels.RMNodeLabelsManager() {
      @Override public void updateNodeResource(NodeId node, Resource to) { }
    });
    ctx.setRMApplicationHistoryWriter(new RMApplicationHistoryWriter());
    ctx.setSystemMetricsPublisher(stub(SystemMetricsPublisher.class, (m, a) -> {
      if (m.equals("containerCreated")) onAllocated((RMContainer) a[0]);
      else if (m.equals("containerFinished")) onFinished((RMContainer) a[0]);
      return NONE;
    }));
    ctx.setAllocationTagsManager(new AllocationTagsManager(ctx));
    ctx.setQueuePlacementManager(new PlacementManager());

    fs = new FairScheduler();
    ctx.setScheduler(fs);
    Clock clock = new Clock() { public long getTime() { return now; } };
    fs.setClock(clock);
    fs.setRMContext(ctx);
    fs.init(conf);                       // never start(): no thread of it runs
    fs.getNodeTracker().setForceConfiguredMaxAllocation(!maxByNodes);

    loader = field(FairScheduler.class, "allocsLoader").get(fs);
    reloadAllocations = loader.getClass().getMethod("reloadAllocations");
    preemptor = fs.preemptionThread;     // created only if yarn.scheduler.fair.preemption
    if (preemptor != null) {
      identify = FSPreemptionThread.class.getDeclaredMethod("identifyContainersToPreempt", FSAppAttempt.class);
      identify.setAccessible(true);
      warnMs = field(FSPreemptionThread.class, "warnTimeBeforeKill").getLong(preemptor);
      nextStarvationDelayMs = field(FSPreemptionThread.class, "delayBeforeNextStarvationCheck").getLong(preemptor);
      starvedHolder = fs.getContext().getStarvedApps();
      @SuppressWarnings("unchecked")
      java.util.concurrent.PriorityBlockingQueue<FSAppAttempt> q =
          (java.util.concurrent.PriorityBlockingQueue<FSAppAttempt>)
              field(FSStarvedApps.class, "appsToProcess").get(starvedHolder);
      starvedQueue = q;
      beingProcessed = field(FSStarvedApps.class, "appBeingProcessed");
      ((java.util.Timer) field(FSPreemptionThread.class, "preemptionTimer").get(preemptor)).cancel();
    }
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
  final Map<String, Integer> pendingAsks = new HashMap<>();

  void writeAllocations(String xml) throws IOException {
    String x = xml.trim();
    if (!x.startsWith("<?xml")) x = "<?xml version=\"1.0\"?>\n" + x;
    Files.write(allocFile, x.getBytes(StandardCharsets.UTF_8));
  }

  // ---- helpers for events --------------------------------------------------
  void skip(ObjectNode ev, String why) { ObjectNode o = rec(); o.put("why", why); o.set("event", ev); skipped.add(o); }
  ObjectNode base(String kind) { ObjectNode o = M.createObjectNode(); o.put("t", now); return o; }
  void log(ObjectNode o) { if (explicit != null) explicit.add(o); }

  static final List<ResourceRequest> NO_ASK = new ArrayList<>();

  Allocation callAllocate(App a, List<ResourceRequest> asks, List<ContainerId> rel) {
    Allocation al = fs.allocate(a.attempt, asks, null, rel, null, null, new ContainerUpdates());
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

  void newAttempt(App a) {
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
    fs.handle(new AppAttemptAddedSchedulerEvent(a.attempt, false));
    if (a.managed) {
      ObjectNode r = M.createObjectNode();
      r.put("priority", 0).put("count", 1).put("memory_mb", a.amRes.getMemorySize()).put("vcores", a.amRes.getVirtualCores());
      callAllocate(a, new ArrayList<>(List.of(rr(r))), new ArrayList<>());
    }
  }

  void submit(ObjectNode e) {
    App a = new App();
    a.name = e.get("app").asText(); a.queue = e.get("queue").asText(); a.user = e.path("user").asText("u");
    a.id = ApplicationId.newInstance(clusterTs, e.has("id") ? e.get("id").asInt() : appSeq + 1);
    appSeq = Math.max(appSeq + 1, a.id.getId());
    a.managed = e.has("am") || e.path("managed").asBoolean(false);
    a.autoEnd = e.path("auto_end").asBoolean(false);
    a.onAmKilled = e.has("on_am_killed") ? e.get("on_am_killed").asText() : null;
    a.asksToCome = pendingAsks.getOrDefault(a.name, 0);
    if (apps.containsKey(a.name)) { skip(e, "name in use"); return; }
    if (e.has("am")) a.amRes = Resource.newInstance(e.get("am").get("memory_mb").asLong(), e.get("am").path("vcores").asInt(1));
    apps.put(a.name, a); byId.put(a.id, a);
    ApplicationSubmissionContext asc = Records.newRecord(ApplicationSubmissionContext.class);
    asc.setApplicationId(a.id); asc.setQueue(a.queue); asc.setUnmanagedAM(!a.managed);
    List<ResourceRequest> amReqs = null;
    if (a.amRes != null) {
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
    // The attempt object must exist before the scheduler's FSAppAttempt is built.
    ctx.getRMApps().put(a.id, a.rmApp);
    ObjectNode o = base("app"); o.put("app", a.name).put("queue", a.queue).put("user", a.user);
    if (e.has("id")) o.put("id", a.id.getId());
    if (e.has("am")) o.set("am", e.get("am"));
    if (e.path("managed").asBoolean(false)) o.put("managed", true);
    log(o);
    fs.handle(new AppAddedSchedulerEvent(a.id, a.queue, a.user, new ApplicationPlacementContext(a.queue)));
    if (!a.dead) {
      if (a.amRes == null && a.managed) {      // managed without "am": the first ask is the AM's
        a.amRes = null;
        newAttemptNoAsk(a);
      } else newAttempt(a);
    }
  }
  void newAttemptNoAsk(App a) { boolean m = a.managed; a.managed = false; newAttempt(a); a.managed = m; }

  void ask(App a, ObjectNode e) {
    if (a.dead) { a.asksToCome--; skip(e, "app gone"); return; }
    if (e.has("after_am_ms") && a.managed && a.amAt < 0) { a.held.add(e); return; }
    if (e.has("after_am_ms") && a.managed && now < a.amAt + e.get("after_am_ms").asLong()) {
      later(a.amAt + e.get("after_am_ms").asLong(), () -> ask(a, e)); return;
    }
    a.asksToCome--;
    List<ResourceRequest> l = new ArrayList<>();
    ObjectNode o = base("ask"); o.put("ask", a.name);
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
    ObjectNode o = base("finish"); o.putObject("finish").put("app", a.name).put("n", n);
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
    ObjectNode o = base("end"); o.put("end", a.name); log(o);
    a.dead = true;
    fs.handle(new AppAttemptRemovedSchedulerEvent(a.attempt, RMAppAttemptState.FINISHED, false));
    fs.handle(new AppRemovedSchedulerEvent(a.id, RMAppState.FINISHED));
    ctx.getRMApps().remove(a.id);
  }

  void restart(App a) {
    if (a.dead) return;
    ObjectNode o = base("restart"); o.put("restart", a.name); log(o);
    fs.handle(new AppAttemptRemovedSchedulerEvent(a.attempt, RMAppAttemptState.FAILED, false));
    newAttempt(a);
  }

  void kill(List<RMContainer> l) {
    for (RMContainer c : l) {
      ContainerStatus st = SchedulerUtils.createPreemptedContainerStatus(c.getContainerId(), SchedulerUtils.PREEMPTED_CONTAINER);
      fs.completedContainer(c, st, RMContainerEventType.KILL);
    }
  }

  @SuppressWarnings("unchecked")
  void drivePreemption() throws Exception {
    if (preemptor == null) return;
    while (true) {
      beingProcessed.set(starvedHolder, null);
      FSAppAttempt app = starvedQueue.poll();
      if (app == null) return;
      beingProcessed.set(starvedHolder, app);
      List<RMContainer> l = (List<RMContainer>) identify.invoke(preemptor, app);
      for (RMContainer r : l) {
        Con c = cons.get(r.getContainerId());
        preempted.add(rec().put("app", c.app.name).put("n", c.n).put("node", c.node)
            .put("for", byId.get(app.getApplicationId()).name).put("kill_at", now + warnMs));
      }
      if (!l.isEmpty()) due.add(new Due(now + warnMs, true, dueSeq++, () -> kill(l)));
      app.preemptionTriggered(nextStarvationDelayMs);
    }
  }

  void queueShares(FSQueue q, ObjectNode o) {
    ObjectNode x = o.putObject(q.getName());
    res(x, "fair", q.getFairShare()); res(x, "steady", q.getSteadyFairShare());
    res(x, "usage", q.getResourceUsage()); res(x, "demand", q.getDemand());
    if (q instanceof FSLeafQueue) {
      FSLeafQueue l = (FSLeafQueue) q;
      res(x, "am", l.getAmResourceUsage());
      x.put("runnable", l.getNumRunnableApps()).put("pending", l.getNumPendingApps());
    }
    List<FSQueue> ch = new ArrayList<>(q.getChildQueues());
    ch.sort(Comparator.comparing(FSQueue::getName));
    for (FSQueue c : ch) queueShares(c, o);
  }
  static void res(ObjectNode x, String k, Resource r) { x.put(k + "_mb", r.getMemorySize()).put(k + "_vcores", r.getVirtualCores()); }

  void update() throws Exception {
    fs.update();
    if (!optShares.equals("none")) {
      ObjectNode o = rec();
      queueShares(fs.getQueueManager().getRootQueue(), o.putObject("queues"));
      if (optShares.equals("all")) {
        ObjectNode as = o.putObject("apps");
        for (App a : apps.values()) {
          if (a.dead) continue;
          FSAppAttempt f = fs.getSchedulerApp(a.attempt);
          ObjectNode x = as.putObject(a.name);
          res(x, "fair", f.getFairShare()); res(x, "usage", f.getResourceUsage()); res(x, "demand", f.getDemand());
          x.put("runnable", f.getQueue().isRunnableApp(f));
        }
      }
      shares.add(o);
    }
    drivePreemption();
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
    fs.handle(new NodeUpdateSchedulerEvent(nm.rmNode));
    dispatch();
  }

  void run(ObjectNode e) throws Exception {
    if (e.has("update")) { log(e); update(); }
    else if (e.has("heartbeat")) {
      Nm nm = nodes.get(e.get("heartbeat").asText());
      if (nm == null || !nm.registered) { skip(e, "node not registered"); return; }
      log(e); heartbeat(nm);
    } else if (e.has("ask")) {
      App a = apps.get(e.get("ask").asText());
      if (a == null) skip(e, "no such app"); else ask(a, e);
    } else if (e.has("app")) submit(e);
    else if (e.has("node")) {
      Nm nm = nodes.get(e.get("node").asText());
      if (nm == null || nm.registered) { skip(e, "unknown node or already registered"); return; }
      log(e);
      nm.draining = false; nm.total = nm.own;
      nm.registered = true; ctx.getRMNodes().put(nm.rmNode.getNodeID(), nm.rmNode);
      fs.handle(new NodeAddedSchedulerEvent(nm.rmNode));
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
      fs.handle(new NodeResourceUpdateSchedulerEvent(nm.rmNode, option));
      dispatch();
    } else if (e.has("lost")) {
      Nm nm = nodes.get(e.get("lost").asText());
      if (nm == null || !nm.registered) { skip(e, "node not registered"); return; }
      log(e);
      nm.registered = false;
      fs.handle(new NodeRemovedSchedulerEvent(nm.rmNode));
      ctx.getRMNodes().remove(nm.rmNode.getNodeID());
      nm.toLaunch.clear(); nm.toComplete.clear(); nm.updates.clear();
    } else if (e.has("finish")) {
      App a = apps.get(e.get("finish").get("app").asText());
      if (a == null) skip(e, "no such app"); else finish(a, e.get("finish").get("n").asInt(), false);
    } else if (e.has("release")) {
      App a = apps.get(e.get("release").get("app").asText());
      int n = e.get("release").get("n").asInt();
      if (a == null || a.dead || n < 1 || n > a.cons.size()) { skip(e, "no such container"); return; }
      if (a.cons.get(n - 1).done) { skip(e, "container already gone"); return; }
      if (!a.cons.get(n - 1).acquired) { skip(e, "container not yet acquired"); return; }
      log(e);
      told(a, callAllocate(a, new ArrayList<>(), new ArrayList<>(List.of(a.cons.get(n - 1).id))));
    } else if (e.has("pull")) {
      App a = apps.get(e.get("pull").asText());
      if (a == null || a.dead) { skip(e, "no such app"); return; }
      log(e); told(a, callAllocate(a, new ArrayList<>(), new ArrayList<>()));
    } else if (e.has("end")) {
      App a = apps.get(e.get("end").asText());
      if (a == null || a.dead) skip(e, "no such app"); else end(a);
    } else if (e.has("restart")) {
      App a = apps.get(e.get("restart").asText());
      if (a == null || a.dead) skip(e, "no such app"); else restart(a);
    } else if (e.has("reload")) {
      log(e);
      writeAllocations(e.get("reload").asText());
      reloadAllocations.invoke(loader);
    } else if (e.has("check")) {
      log(e);
      fs.getQueueManager().removeEmptyDynamicQueues();
      fs.getQueueManager().removePendingIncompatibleQueues();
    } else throw new IllegalArgumentException("unknown event " + e);
  }

  void after() {
    // AM containers are always fetched at once (the RM itself does it); others if acquire=auto.
    for (App a : new ArrayList<>(fresh)) {
      if (a.dead) continue;
      if (optAcquire.equals("auto") || (a.managed && a.master == null)) callAllocate(a, new ArrayList<>(), new ArrayList<>());
    }
    fresh.clear();
    for (Nm nm : nodes.values()) {
      FSSchedulerNode n = (FSSchedulerNode) fs.getSchedulerNode(nm.rmNode.getNodeID());
      RMContainer r = n == null ? null : n.getReservedContainer();
      if (r == nm.reserved) continue;
      if (nm.reserved != null) reservation(nm, nm.reserved, "unreserve");
      if (r != null) { everReserved.add(r.getContainerId()); reservation(nm, r, "reserve"); }
      nm.reserved = r;
    }
    for (App a : maybeEnd) {
      if (!a.autoEnd || a.dead || a.endQueued || a.asksToCome > 0 || !a.held.isEmpty()) continue;
      if (a.live > (a.master != null ? 1 : 0)) continue;
      FSAppAttempt f = fs.getSchedulerApp(a.attempt);
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
    onTime.accept(now);
  }

  void drainDue(long upTo) {
    while (!due.isEmpty() && due.peek().t <= upTo) {
      Due d = due.poll();
      now = Math.max(now, d.t);
      onTime.accept(now);
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
      onTime.accept(now);
      guarded(e, () -> { run(e); return null; });
      drainDue(t);
      k++;
    }
    long t2 = System.nanoTime();
    ObjectNode st = out.putObject("meta");
    st.put("events", k).put("assignments", assignments.size());
    if (preemptor != null) st.put("warn_ms", warnMs).put("next_starvation_check_ms", nextStarvationDelayMs);
    System.err.printf("setup %.0f ms, run %.0f ms, %d events, %d assignments, %.0f assignments/s%n",
        (t1 - t0) / 1e6, (t2 - t1) / 1e6, k, assignments.size(), assignments.size() / ((t2 - t1) / 1e9));
    Files.deleteIfExists(allocFile);
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

  // Oracle IN EXPLICIT OUT [IN EXPLICIT OUT ...]: plays each script; EXPLICIT takes it as executed, base events only.
  public static void main(String[] argv) throws Exception {
    playAll(argv);
    System.exit(0);        // the scheduler leaves a non-daemon timer thread behind
  }

  public static void playAll(String[] argv) throws Exception {
    for (int j = 0; j + 2 < argv.length; j += 3) {
      JsonNode s = M.readTree(new File(argv[j]));
      Oracle o = new Oracle();
      o.explicit = M.createArrayNode();
      ObjectNode r = o.play(s);
      try (OutputStream f = new FileOutputStream(argv[j + 2])) { write(r, f); }
      ObjectNode full = M.createObjectNode();
      for (String key : List.of("conf", "options", "allocations", "nodes")) if (s.has(key)) full.set(key, s.get(key));
      full.set("events", o.explicit);
      try (OutputStream f = new FileOutputStream(argv[j + 1])) { write(full, f); }
    }
  }
}
