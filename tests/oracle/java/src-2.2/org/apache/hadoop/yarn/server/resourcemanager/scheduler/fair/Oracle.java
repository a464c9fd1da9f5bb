// Drives the FairScheduler of Hadoop 2.2.0 from a JSON script (format: harness.sim.decide). It lives in the scheduler's
// package to reach package-private members. Covered: nodes, unmanaged applications, asks for any node, updates,
// heartbeats, ends of containers (by themselves after `duration_ms`, or killed with their application) and of
// applications, releases. Containers that are not running any more leave their node at once (`"launch": "never"`).
package org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair;

import java.io.File;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.yarn.api.records.*;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.event.*;
import org.apache.hadoop.yarn.server.resourcemanager.RMContext;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptState;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.event.RMAppAttemptContainerAllocatedEvent;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.*;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.*;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.*;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.*;
import org.apache.hadoop.yarn.server.resourcemanager.security.RMContainerTokenSecretManager;
import org.apache.hadoop.yarn.util.Clock;
import org.codehaus.jackson.JsonNode;
import org.codehaus.jackson.map.ObjectMapper;

public final class Oracle {
  static final ObjectMapper JSON = new ObjectMapper();

  static final class App {
    String name;
    ApplicationAttemptId attempt;
    boolean dead, autoEnd;
    int asksToCome, live;
    final List<Con> containers = new ArrayList<Con>();
    final Map<Integer, Long> durations = new HashMap<Integer, Long>();
  }

  static final class Con {
    App app;
    int n;
    ContainerId id;
    Node node;
    boolean done, finishing;
  }

  static final class Node {
    String name;
    NodeId id;
    RMNode rm;
    boolean registered;
    final List<ContainerStatus> completed = new ArrayList<ContainerStatus>();
    Object[] reservation;
  }

  static final class Due implements Comparable<Due> {
    final long t, number;
    final Con container;

    Due(long t, long number, Con container) {
      this.t = t;
      this.number = number;
      this.container = container;
    }

    public int compareTo(Due other) {
      return t != other.t ? Long.compare(t, other.t) : Long.compare(number, other.number);
    }
  }

  long now, number;
  final PriorityQueue<Due> due = new PriorityQueue<Due>();
  final Map<String, App> apps = new LinkedHashMap<String, App>();
  final Map<ApplicationAttemptId, App> byAttempt = new HashMap<ApplicationAttemptId, App>();
  final Map<ContainerId, Con> containers = new HashMap<ContainerId, Con>();
  final Map<String, Node> nodes = new LinkedHashMap<String, Node>();
  final Set<ContainerId> everReserved = new HashSet<ContainerId>();
  final Set<App> fresh = new LinkedHashSet<App>();
  final List<Object> assignments = new ArrayList<Object>();
  final List<Object> reserved = new ArrayList<Object>();
  final List<Object> explicit = new ArrayList<Object>();
  final ConcurrentMap<ApplicationId, RMApp> rmApps = new ConcurrentHashMap<ApplicationId, RMApp>();
  FairScheduler scheduler;
  int appNumber;

  interface Answer {
    Object on(String method, Object[] args);
  }

  static final Object NONE = new Object();

  @SuppressWarnings("unchecked")
  static <T> T stub(Class<T> type, Answer answer) {
    return (T) Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, method, args) -> {
      String name = method.getName();
      if (name.equals("hashCode") && args == null) return System.identityHashCode(proxy);
      if (name.equals("equals") && args != null && args.length == 1) return proxy == args[0];
      if (name.equals("toString")) return type.getSimpleName();
      Object found = answer.on(name, args);
      if (found != NONE) return found;
      Class<?> wanted = method.getReturnType();
      if (wanted == boolean.class) return false;
      if (wanted == int.class) return 0;
      if (wanted == long.class) return 0L;
      if (wanted == float.class) return 0f;
      return null;
    });
  }

  static Field field(Class<?> type, String name) throws Exception {
    Field found = type.getDeclaredField(name);
    found.setAccessible(true);
    return found;
  }

  /** A record of what happens now, of names and values in turn. */
  Map<String, Object> record(Object... pairs) {
    Map<String, Object> found = map(pairs);
    found.put("t", now);
    return found;
  }

  static Map<String, Object> map(Object... pairs) {
    Map<String, Object> found = new LinkedHashMap<String, Object>();
    for (int i = 0; i < pairs.length; i += 2) found.put((String) pairs[i], pairs[i + 1]);
    return found;
  }

  void setUp(JsonNode script) throws Exception {
    QueueMetrics.clearQueueMetrics();
    DefaultMetricsSystem.setMiniClusterMode(true);
    Configuration conf = new YarnConfiguration();
    for (Iterator<Map.Entry<String, JsonNode>> it = script.path("conf").getFields(); it.hasNext(); ) {
      Map.Entry<String, JsonNode> entry = it.next();
      conf.set(entry.getKey(), entry.getValue().getValueAsText());
    }
    File file = File.createTempFile("allocations", ".xml");
    file.deleteOnExit();
    Files.write(file.toPath(), script.path("allocations").getTextValue().trim().getBytes(StandardCharsets.UTF_8));
    conf.set(FairSchedulerConfiguration.ALLOCATION_FILE, file.getAbsolutePath());

    EventHandler<Event> handler = event -> {
      if (event instanceof RMAppAttemptContainerAllocatedEvent) allocated((RMAppAttemptContainerAllocatedEvent) event);
    };
    Dispatcher dispatcher = stub(Dispatcher.class, (m, a) -> m.equals("getEventHandler") ? handler : NONE);
    ContainerAllocationExpirer expirer = new ContainerAllocationExpirer(dispatcher) {
      @Override public synchronized void register(ContainerId id) { }
      @Override public synchronized void unregister(ContainerId id) { }
    };
    Token token = Token.newInstance(new byte[] {1}, "kind", new byte[] {1}, "service");
    RMContainerTokenSecretManager tokens = new RMContainerTokenSecretManager(conf) {
      @Override public Token createContainerToken(ContainerId id, NodeId node, String user, Resource size) {
        return token;
      }
    };
    RMContext context = stub(RMContext.class, (m, a) -> {
      switch (m) {
        case "getDispatcher": return dispatcher;
        case "getRMApps": return rmApps;
        case "getContainerAllocationExpirer": return expirer;
        case "getContainerTokenSecretManager": return tokens;
        default: return NONE;
      }
    });
    scheduler = new FairScheduler();
    scheduler.setClock(() -> now);
    scheduler.reinitialize(conf, context);
    // The scheduler's own thread would update by the wall clock; it sleeps half a second before it does.
    for (Thread thread : Thread.getAllStackTraces().keySet()) {
      if (thread.getName().equals("FairSchedulerUpdateThread")) thread.stop();
    }
    for (JsonNode one : script.path("nodes")) {
      Node node = new Node();
      node.name = one.get("name").getTextValue();
      node.id = NodeId.newInstance(node.name, 45454);
      Resource total = Resource.newInstance(one.get("memory_mb").getIntValue(), one.get("vcores").getIntValue());
      node.rm = stub(RMNode.class, (m, a) -> {
        switch (m) {
          case "getNodeID": return node.id;
          case "getHostName": return node.name;
          case "getNodeAddress": return node.name + ":45454";
          case "getHttpAddress": return node.name + ":8042";
          case "getRackName": return "/default-rack";
          case "getTotalCapability": return total;
          case "getState": return NodeState.RUNNING;
          case "pullContainerUpdates": return updates(node);
          default: return NONE;
        }
      });
      nodes.put(node.name, node);
    }
    for (JsonNode event : script.path("events")) {
      if (event.has("ask")) {
        String name = event.get("ask").getTextValue();
        asksToCome.put(name, asksToCome.containsKey(name) ? asksToCome.get(name) + 1 : 1);
      }
    }
  }

  final Map<String, Integer> asksToCome = new HashMap<String, Integer>();

  List<UpdatedContainerInfo> updates(Node node) {
    List<ContainerStatus> ended = new ArrayList<ContainerStatus>(node.completed);
    node.completed.clear();
    return Collections.singletonList(new UpdatedContainerInfo(new ArrayList<ContainerStatus>(), ended));
  }

  void allocated(RMAppAttemptContainerAllocatedEvent event) {
    Container container = event.getContainer();
    App app = byAttempt.get(event.getApplicationAttemptId());
    Con one = new Con();
    one.app = app;
    one.n = app.containers.size() + 1;
    one.id = container.getId();
    one.node = nodes.get(container.getNodeId().getHost());
    app.containers.add(one);
    app.live++;
    containers.put(one.id, one);
    fresh.add(app);
    int priority = container.getPriority().getPriority();
    Resource size = container.getResource();
    Map<String, Object> record = record("app", app.name, "n", one.n, "node", one.node.name, "priority", priority);
    record.put("memory_mb", size.getMemory());
    record.put("vcores", size.getVirtualCores());
    if (everReserved.contains(one.id)) record.put("from_reservation", true);
    assignments.add(record);
    Long duration = app.durations.get(priority);
    if (duration != null) due.add(new Due(now + duration, number++, one));
  }

  void finish(Con one) {
    if (one.done || one.finishing) return;
    explicit.add(record("finish", map("app", one.app.name, "n", one.n)));
    one.finishing = true;
    ContainerStatus status = ContainerStatus.newInstance(one.id, ContainerState.COMPLETE, "", 0);
    one.node.completed.add(status);
  }

  void submit(JsonNode event) throws Exception {
    App app = new App();
    app.name = event.get("app").getTextValue();
    int id = event.has("id") ? event.get("id").getIntValue() : appNumber + 1;
    appNumber = Math.max(appNumber + 1, id);
    ApplicationId application = ApplicationId.newInstance(0, id);
    app.attempt = ApplicationAttemptId.newInstance(application, 1);
    app.autoEnd = event.path("auto_end").getValueAsBoolean();
    app.asksToCome = asksToCome.containsKey(app.name) ? asksToCome.get(app.name) : 0;
    apps.put(app.name, app);
    byAttempt.put(app.attempt, app);
    rmApps.put(application, stub(RMApp.class, (m, a) -> NONE));
    String user = event.has("user") ? event.get("user").getTextValue() : "u";
    Map<String, Object> base = record("app", app.name, "queue", event.get("queue").getTextValue(), "user", user);
    if (event.has("id")) base.put("id", id);
    explicit.add(base);
    scheduler.handle(new AppAddedSchedulerEvent(app.attempt, event.get("queue").getTextValue(), user));
    // The class takes the start from the wall clock.
    AppSchedulable entry = scheduler.applications.get(app.attempt).getAppSchedulable();
    field(AppSchedulable.class, "startTime").setLong(entry, now);
  }

  static final List<ContainerId> NOTHING = new ArrayList<ContainerId>();
  static final List<ResourceRequest> NO_ASK = new ArrayList<ResourceRequest>();

  void allocate(App app, List<ResourceRequest> asks, List<ContainerId> released) {
    scheduler.allocate(app.attempt, asks, released, null, null);
  }

  void ask(App app, JsonNode event) {
    app.asksToCome--;
    if (app.dead) return;
    List<ResourceRequest> asks = new ArrayList<ResourceRequest>();
    List<Object> listed = new ArrayList<Object>();
    for (JsonNode one : event.has("requests") ? event.get("requests") : Collections.singletonList(event)) {
      int priority = one.has("priority") ? one.get("priority").getIntValue() : 1;
      int count = one.has("count") ? one.get("count").getIntValue() : 1;
      int vcores = one.has("vcores") ? one.get("vcores").getIntValue() : 1;
      int memory = one.get("memory_mb").getIntValue();
      Resource size = Resource.newInstance(memory, vcores);
      asks.add(ResourceRequest.newInstance(Priority.newInstance(priority), ResourceRequest.ANY, size, count));
      if (one.has("duration_ms")) app.durations.put(priority, one.get("duration_ms").getLongValue());
      listed.add(map("priority", priority, "count", count, "memory_mb", memory, "vcores", vcores));
    }
    explicit.add(record("ask", app.name, "requests", listed));
    allocate(app, asks, NOTHING);
  }

  void end(App app) {
    if (app.dead) return;
    explicit.add(record("end", app.name));
    app.dead = true;
    scheduler.handle(new AppRemovedSchedulerEvent(app.attempt, RMAppAttemptState.FINISHED));
  }

  void play(JsonNode event) throws Exception {
    if (event.has("update")) {
      explicit.add(record("update", true));
      scheduler.update();
    } else if (event.has("heartbeat")) {
      Node node = nodes.get(event.get("heartbeat").getTextValue());
      if (!node.registered) return;
      explicit.add(record("heartbeat", node.name));
      scheduler.handle(new NodeUpdateSchedulerEvent(node.rm));
    } else if (event.has("ask")) {
      ask(apps.get(event.get("ask").getTextValue()), event);
    } else if (event.has("app")) {
      submit(event);
    } else if (event.has("node")) {
      Node node = nodes.get(event.get("node").getTextValue());
      if (node.registered) return;
      explicit.add(record("node", node.name));
      node.registered = true;
      scheduler.handle(new NodeAddedSchedulerEvent(node.rm));
    } else if (event.has("lost")) {
      Node node = nodes.get(event.get("lost").getTextValue());
      if (!node.registered) return;
      explicit.add(record("lost", node.name));
      node.registered = false;
      node.completed.clear();
      scheduler.handle(new NodeRemovedSchedulerEvent(node.rm));
    } else if (event.has("release")) {
      JsonNode what = event.get("release");
      App app = apps.get(what.get("app").getTextValue());
      int n = what.get("n").getIntValue();
      if (app == null || app.dead || n < 1 || n > app.containers.size()) return;
      Con one = app.containers.get(n - 1);
      if (one.done || one.finishing) return;
      explicit.add(record("release", map("app", app.name, "n", n)));
      allocate(app, NO_ASK, Collections.singletonList(one.id));
    } else if (event.has("end")) {
      end(apps.get(event.get("end").getTextValue()));
    } else {
      throw new IllegalArgumentException("not covered: " + event);
    }
  }

  /** Records what the last event has changed, and ends applications that have nothing left. */
  void after() throws Exception {
    for (App app : fresh) if (!app.dead) allocate(app, NO_ASK, NOTHING);
    fresh.clear();
    for (Con one : new ArrayList<Con>(containers.values())) {
      if (one.done) continue;
      FSSchedulerApp held = scheduler.applications.get(one.app.attempt);
      if (held != null && held.getRMContainer(one.id) != null) continue;
      one.done = true;
      one.app.live--;
      containers.remove(one.id);
    }
    @SuppressWarnings("unchecked")
    Map<NodeId, FSSchedulerNode> known =
        (Map<NodeId, FSSchedulerNode>) field(FairScheduler.class, "nodes").get(scheduler);
    for (Node node : nodes.values()) {
      FSSchedulerNode here = known.get(node.id);
      RMContainer held = here == null ? null : here.getReservedContainer();
      ContainerId before = node.reservation == null ? null : (ContainerId) node.reservation[0];
      ContainerId after = held == null ? null : held.getContainerId();
      if (Objects.equals(before, after)) continue;
      if (before != null) reserved.add(told("unreserve", node));
      node.reservation = null;
      if (held != null) {
        everReserved.add(after);
        App app = byAttempt.get(held.getApplicationAttemptId());
        node.reservation = new Object[] {after, app.name, held.getContainer().getResource()};
        reserved.add(told("reserve", node));
      }
    }
    for (App app : apps.values()) {
      if (app.autoEnd && !app.dead && app.asksToCome == 0 && app.live == 0 && !pending(app)) {
        end(app);
        after();
        return;
      }
    }
  }

  boolean pending(App app) {
    FSSchedulerApp held = scheduler.applications.get(app.attempt);
    for (Priority priority : held.getPriorities()) if (held.getTotalRequiredResources(priority) > 0) return true;
    return false;
  }

  Map<String, Object> told(String what, Node node) {
    Resource size = (Resource) node.reservation[2];
    Map<String, Object> found = record("op", what, "app", node.reservation[1], "node", node.name);
    found.put("memory_mb", size.getMemory());
    found.put("vcores", size.getVirtualCores());
    return found;
  }

  void run(JsonNode script) throws Exception {
    setUp(script);
    for (JsonNode event : script.path("events")) {
      long t = event.get("t").getLongValue();
      fall(t);
      now = t;
      play(event);
      after();
      fall(t);
    }
  }

  void fall(long upTo) throws Exception {
    while (!due.isEmpty() && due.peek().t <= upTo) {
      Due next = due.poll();
      now = Math.max(now, next.t);
      finish(next.container);
      after();
    }
  }

  /** Arguments: the files of a script, of the script as it was executed, and of the decisions; more of them in turn. */
  public static void main(String[] args) throws Exception {
    for (int i = 0; i + 2 < args.length; i += 3) {
      JsonNode script = JSON.readTree(Files.readString(Path.of(args[i])));
      Oracle oracle = new Oracle();
      oracle.run(script);
      Map<String, Object> base = map("events", oracle.explicit);
      for (String key : new String[] {"conf", "options", "allocations", "nodes"}) base.put(key, script.get(key));
      JSON.writeValue(new File(args[i + 1]), base);
      JSON.writeValue(new File(args[i + 2]), map("assignments", oracle.assignments, "reserved", oracle.reserved));
    }
    System.exit(0);
  }
}
