package org.apache.hadoop.mapreduce.v2.app.rm;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.v2.api.records.JobId;
import org.apache.hadoop.mapreduce.v2.api.records.TaskAttemptId;
import org.apache.hadoop.mapreduce.v2.api.records.TaskId;
import org.apache.hadoop.mapreduce.v2.api.records.TaskType;
import org.apache.hadoop.mapreduce.v2.app.AppContext;
import org.apache.hadoop.mapreduce.v2.app.ClusterInfo;
import org.apache.hadoop.mapreduce.v2.app.MRAppMaster;
import org.apache.hadoop.mapreduce.v2.app.job.Job;
import org.apache.hadoop.mapreduce.v2.app.job.Task;
import org.apache.hadoop.mapreduce.v2.app.job.TaskAttempt;
import org.apache.hadoop.mapreduce.v2.app.job.event.TaskAttemptKillEvent;
import org.apache.hadoop.mapreduce.v2.app.rm.preemption.NoopAMPreemptionPolicy;
import org.apache.hadoop.mapreduce.v2.util.MRBuilderUtils;
import org.apache.hadoop.yarn.api.ApplicationMasterProtocol;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateRequest;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterResponse;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerState;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.event.Event;
import org.apache.hadoop.yarn.event.EventHandler;
import org.apache.hadoop.yarn.proto.YarnServiceProtos.SchedulerResourceTypes;
import org.apache.hadoop.yarn.util.Clock;

/**
 * Drives Hadoop's RMContainerAllocator without a ResourceManager: files with random states, or with a job's heartbeats.
 *
 * <p>Arguments: pairs of files, input and answer. An input is {"states": [...]} or {"jobs": [...]}, see
 * tests/oracle/test_mapreduce_master.py. Stand-ins are proxies of Hadoop's interfaces; the allocator itself is
 * Hadoop's, and not started, so that it has no connection and no thread.
 */
public final class Master {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int MAP = 20, REDUCE = 10;

  private final long[] now = {1_000_000_000L};
  private final JobId jobId;
  private final ApplicationAttemptId attempt;
  private final RMContainerAllocator allocator;
  private final Resource mapSize, reduceSize;
  private final Set<TaskAttemptId> killed = new LinkedHashSet<>();
  private final Map<TaskAttemptId, Float> progress = new HashMap<>();
  private final Map<Integer, Integer> asked = new LinkedHashMap<>();
  private AllocateResponse response;
  private int containers, tasks, completedMaps;
  private final int totalMaps, totalReduces;

  /** A context: RMContainerAllocator casts to this class. */
  private static final class Context extends MRAppMaster.RunningAppContext {
    Clock clock;
    Job job;
    ApplicationAttemptId attempt;
    EventHandler<Event> handler;
    ClusterInfo cluster;

    Context(MRAppMaster master) {
      master.super(null, null);
    }

    @Override public ApplicationAttemptId getApplicationAttemptId() {
      return attempt;
    }

    @Override public ApplicationId getApplicationID() {
      return attempt.getApplicationId();
    }

    @Override public Clock getClock() {
      return clock;
    }

    @Override public EventHandler<Event> getEventHandler() {
      return handler;
    }

    @Override public Job getJob(JobId id) {
      return job;
    }

    @Override public ClusterInfo getClusterInfo() {
      return cluster;
    }

    @Override public Set<String> getBlacklistedNodes() {
      return new HashSet<>();
    }
  }

  private interface Answers {
    Object to(String method, Object[] arguments);
  }

  @SuppressWarnings("unchecked")
  private static <T> T stub(Class<T> type, Answers answers) {
    return (T) Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, method, arguments) -> {
      Object answer = answers.to(method.getName(), arguments);
      if (answer != null) {
        return answer;
      }
      Class<?> kind = method.getReturnType();
      if (kind == int.class) {
        return 0;
      }
      if (kind == float.class) {
        return 0f;
      }
      if (kind == boolean.class) {
        return false;
      }
      return kind == long.class ? (Object) 0L : null;
    });
  }

  private static Object field(Object of, Class<?> type, String name) throws Exception {
    Field field = type.getDeclaredField(name);
    field.setAccessible(true);
    return field.get(of);
  }

  private static void set(Object of, Class<?> type, String name, Object value) throws Exception {
    Field field = type.getDeclaredField(name);
    field.setAccessible(true);
    field.set(of, value);
  }

  private static <T> T bare(Class<T> type) throws Exception {
    Field unsafe = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
    unsafe.setAccessible(true);
    Object it = unsafe.get(null);
    return type.cast(it.getClass().getMethod("allocateInstance", Class.class).invoke(it, type));
  }

  private Master(JsonNode of) throws Exception {
    totalMaps = of.get("maps").asInt();
    totalReduces = of.get("reduces").asInt();
    mapSize = Resource.newInstance(of.get("map_mb").asLong(), of.get("map_vcores").asInt());
    reduceSize = Resource.newInstance(of.get("mb").asLong(), of.get("vcores").asInt());
    ApplicationId app = ApplicationId.newInstance(1, 1);
    attempt = ApplicationAttemptId.newInstance(app, 1);
    jobId = MRBuilderUtils.newJobId(app, 1);
    EnumSet<SchedulerResourceTypes> types = EnumSet.of(SchedulerResourceTypes.MEMORY);
    if (of.get("cpu").asInt() == 1) {
      types.add(SchedulerResourceTypes.CPU);
    }
    Job job = stub(Job.class, (method, arguments) -> {
      switch (method) {
        case "getID": return jobId;
        case "getTotalMaps": return totalMaps;
        case "getTotalReduces": return totalReduces;
        case "getCompletedMaps": return completedMaps;
        case "getTask": return stub(Task.class, (m, a) -> stub(TaskAttempt.class, (name, none) ->
            name.equals("getProgress") ? progress.getOrDefault((TaskAttemptId) a[0], 0f) : null));
        default: return null;
      }
    });
    ApplicationMasterProtocol rm = stub(ApplicationMasterProtocol.class, (method, arguments) -> {
      if (method.equals("registerApplicationMaster")) {
        RegisterApplicationMasterResponse registered = RegisterApplicationMasterResponse.newInstance(
            Resource.newInstance(0, 0), Resource.newInstance(1L << 40, 1 << 20), new HashMap<>(), null,
            new ArrayList<>(), "root.a", new ArrayList<>());
        registered.setSchedulerResourceTypes(types);
        return registered;
      }
      for (ResourceRequest ask : ((AllocateRequest) arguments[0]).getAskList()) {
        if (ask.getResourceName().equals(ResourceRequest.ANY)) {
          asked.put(ask.getPriority().getPriority(), ask.getNumContainers());
        }
      }
      return response;
    });
    Context context = bare(Context.class);
    context.clock = () -> now[0];
    context.job = job;
    context.attempt = attempt;
    context.cluster = new ClusterInfo();
    context.handler = event -> {
      if (event instanceof TaskAttemptKillEvent) {
        killed.add(((TaskAttemptKillEvent) event).getTaskAttemptID());
      }
    };
    Configuration conf = new Configuration(false);
    for (Map.Entry<String, JsonNode> entry : (Iterable<Map.Entry<String, JsonNode>>) () -> of.get("conf").fields()) {
      conf.set(entry.getKey(), entry.getValue().asText());
    }
    allocator = new RMContainerAllocator(null, context, new NoopAMPreemptionPolicy());
    allocator.init(conf);
    // Not started: no thread runs. What starting it would set is set here.
    set(allocator, RMCommunicator.class, "job", job);
    allocator.scheduler = rm;
    allocator.register();
    allocator.setMapResourceRequest(mapSize);
    allocator.setReduceResourceRequest(reduceSize);
  }

  private TaskAttemptId task(TaskType type) {
    TaskId id = MRBuilderUtils.newTaskId(jobId, tasks++, type);
    return MRBuilderUtils.newTaskAttemptId(id, 0);
  }

  private void request(TaskType type, int count) {
    for (int i = 0; i < count; i++) {
      Resource size = type == TaskType.MAP ? mapSize : reduceSize;
      allocator.handleEvent(new ContainerRequestEvent(
          task(type), Resource.newInstance(size.getMemorySize(), size.getVirtualCores()), new String[0],
          new String[0]));
    }
  }

  private Container container(int priority) {
    Resource size = priority == MAP ? mapSize : reduceSize;
    ContainerId id = ContainerId.newContainerId(attempt, ++containers);
    return Container.newInstance(id, NodeId.newInstance("n", 1), "n:2", size, Priority.newInstance(priority), null);
  }

  private void respond(List<Container> granted, List<ContainerStatus> ended, Resource room) {
    response = AllocateResponse.newInstance(
        0, ended, granted, new ArrayList<>(), room, null, 1, null, new ArrayList<>());
  }

  private void age(int from, int to, long ms) throws Exception {
    int at = 0;
    for (Object request : allocator.getScheduledRequests().maps.values()) {
      if (at >= from && at < to) {
        set(request, RMContainerRequestor.ContainerRequest.class, "requestTimeMs", now[0] - ms);
      }
      at++;
    }
  }

  private ObjectNode counts() {
    ObjectNode out = JSON.createObjectNode();
    out.put("scheduled", allocator.getScheduledRequests().reduces.size());
    out.put("pending", allocator.getNumOfPendingReduces());
    out.put("killed", killed.size());
    return out;
  }

  private static Resource room(JsonNode of) {
    return Resource.newInstance(of.get("room_mb").asLong(), of.get("room_vcores").asInt());
  }

  /** One decision in a state that is put together from its numbers. */
  private static ObjectNode decide(JsonNode of) throws Exception {
    Master master = new Master(of);
    RMContainerAllocator allocator = master.allocator;
    master.completedMaps = of.get("completed").asInt();
    master.request(TaskType.MAP, of.get("waiting_maps").asInt());
    master.age(0, of.get("waiting_maps").asInt(), 1_000);
    master.age(0, of.get("long_waiting").asInt(), 20_000);
    master.age(0, of.get("waiting_too_long").asInt(), 400_000);
    master.request(TaskType.REDUCE, of.get("scheduled").asInt() + of.get("pending").asInt());
    allocator.rampUpReduces(of.get("scheduled").asInt());
    for (int i = 0; i < of.get("held_maps").asInt(); i++) {
      allocator.getAssignedRequests().add(master.container(MAP), master.task(TaskType.MAP));
    }
    for (int i = 0; i < of.get("held").asInt(); i++) {
      allocator.getAssignedRequests().add(master.container(REDUCE), master.task(TaskType.REDUCE));
    }
    allocator.setIsReduceStarted(of.get("started").asInt() == 1);
    master.respond(new ArrayList<>(), new ArrayList<>(), room(of));
    allocator.heartbeat();
    ObjectNode out = master.counts();
    out.put("started", allocator.getIsReduceStarted() ? 1 : 0);
    return out;
  }

  /** A job's heartbeats: what it is told and what it then has scheduled, pending, killed and asked for. */
  private static ArrayNode play(JsonNode of) throws Exception {
    Master master = new Master(of);
    RMContainerAllocator allocator = master.allocator;
    ArrayNode out = JSON.createArrayNode();
    master.request(TaskType.MAP, master.totalMaps);
    master.request(TaskType.REDUCE, master.totalReduces);
    List<TaskAttemptId> gone = new ArrayList<>();
    for (JsonNode beat : of.get("beats")) {
      master.completedMaps = beat.get("completed").asInt();
      int atOnce = allocator.getScheduledRequests().maps.size();
      master.age(0, atOnce, beat.get("waited_ms").asLong());
      List<Container> granted = new ArrayList<>();
      for (int i = 0; i < beat.get("granted_maps").asInt(); i++) {
        granted.add(master.container(MAP));
      }
      for (int i = 0; i < beat.get("granted").asInt(); i++) {
        granted.add(master.container(REDUCE));
      }
      List<ContainerStatus> ended = new ArrayList<>();
      List<ContainerId> over = new ArrayList<>();
      int maps = beat.get("ended_maps").asInt();
      for (Container container : allocator.getAssignedRequests().maps.values()) {
        if (over.size() < maps) {
          over.add(container.getId());
        }
      }
      // A map may get its container and end between two heartbeats.
      for (Container container : granted) {
        if (over.size() < maps && container.getPriority().getPriority() == MAP) {
          over.add(container.getId());
        }
      }
      int reduces = beat.get("ended").asInt();
      for (TaskAttemptId id : master.killed) {
        if (reduces > 0 && !gone.contains(id)) {
          gone.add(id);
          reduces--;
          over.add(allocator.getAssignedRequests().get(id));
        }
      }
      List<Container> first = new ArrayList<>();
      Set<ContainerId> before = new HashSet<>();
      for (ContainerId id : over) {
        for (Container container : granted) {
          if (container.getId().equals(id)) {
            before.add(id);
            first.add(container);
          }
        }
      }
      master.request(TaskType.REDUCE, beat.get("again").asInt());
      if (!first.isEmpty()) {
        // Told before the heartbeat, so that their ends are known; what this heartbeat asks for then lacks them.
        Method assign = allocator.getScheduledRequests().getClass().getDeclaredMethod("assign", List.class);
        assign.setAccessible(true);
        assign.invoke(allocator.getScheduledRequests(), new ArrayList<>(first));
        granted.removeAll(first);
      }
      for (ContainerId id : over) {
        ended.add(ContainerStatus.newInstance(id, ContainerState.COMPLETE, "", 0));
      }
      for (Map.Entry<TaskAttemptId, Container> held : allocator.getAssignedRequests().reduces.entrySet()) {
        master.progress.putIfAbsent(held.getKey(), 0f);
      }
      master.now[0] += 1;
      int working = beat.get("working").asInt();
      int at = 0;
      for (TaskAttemptId id : allocator.getAssignedRequests().reduces.keySet()) {
        master.progress.put(id, at++ < working ? 0.1f : 0f);
      }
      master.respond(granted, ended, room(beat));
      allocator.heartbeat();
      ObjectNode counts = master.counts();
      // What of it was asked for is seen at the next heartbeat.
      counts.put("exact", first.isEmpty() ? 1 : 0);
      counts.put("asked_maps", master.asked.getOrDefault(MAP, 0));
      counts.put("asked", master.asked.getOrDefault(REDUCE, 0));
      counts.put("released", ((Set<?>) field(allocator, RMContainerRequestor.class, "release")).size());
      out.add(counts);
    }
    return out;
  }

  public static void main(String[] files) throws Exception {
    for (int i = 0; i < files.length; i += 2) {
      JsonNode input = JSON.readTree(new File(files[i]));
      ArrayNode answers = JSON.createArrayNode();
      if (input.has("states")) {
        for (JsonNode state : input.get("states")) {
          answers.add(decide(state));
        }
      } else {
        for (JsonNode job : input.get("jobs")) {
          answers.add(play(job));
        }
      }
      JSON.writeValue(new File(files[i + 1]), answers);
    }
    System.exit(0);
  }
}
