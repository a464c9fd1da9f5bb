package org.apache.hadoop.mapreduce.jobhistory;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.mapred.JobPriority;
import org.apache.hadoop.mapred.TaskStatus;
import org.apache.hadoop.mapreduce.Counters;
import org.apache.hadoop.mapreduce.JobID;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.apache.hadoop.mapreduce.TaskID;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.security.authorize.AccessControlList;
import org.apache.hadoop.mapreduce.JobACL;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ContainerId;

/**
 * Writes job history files with Hadoop's own EventWriter in both of its forms, and counts what its EventReader reads.
 *
 * <p>Arguments: pairs of files, input and answer. An input is {"write": [{"events": [...], "json": FILE, "binary":
 * FILE}]} or {"count": [FILE]}, see tests/oracle/job_histories.py. Events are named as Avro names their records, with
 * those of their fields that matter; the others are filled in.
 */
public final class Histories {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int[][] SPLITS = {{7, 8}, {300, -1}, {0}, {1 << 30}};

  private Histories() {}

  public static void main(String[] args) throws Exception {
    for (int at = 0; at + 1 < args.length; at += 2) {
      JsonNode given = JSON.readTree(new File(args[at]));
      ArrayNode answer = JSON.createArrayNode();
      for (JsonNode file : given.path("write")) {
        write(file.get("events"), EventWriter.WriteMode.JSON, file.get("json").asText());
        write(file.get("events"), EventWriter.WriteMode.BINARY, file.get("binary").asText());
      }
      for (JsonNode file : given.path("count")) {
        answer.add(count(Files.readAllBytes(new File(file.asText()).toPath())));
      }
      JSON.writeValue(new File(args[at + 1]), answer);
    }
  }

  private static void write(JsonNode events, EventWriter.WriteMode mode, String path) throws IOException {
    EventWriter writer = new EventWriter(new FSDataOutputStream(new FileOutputStream(path), null), mode);
    for (JsonNode event : events) {
      writer.write(eventOf(event));
    }
    writer.close();
  }

  /** How many events are read before the end of the file or its first damage. */
  private static int count(byte[] file) {
    int found = 0;
    try (EventReader reader = new EventReader(new DataInputStream(new ByteArrayInputStream(file)))) {
      while (reader.getNextEvent() != null) {
        found++;
      }
    } catch (Exception damage) {
      return found;
    }
    return found;
  }

  private static HistoryEvent eventOf(JsonNode event) {
    String name = event.get("name").asText();
    JsonNode of = event.get("fields");
    switch (name) {
      case "AMStarted":
        return amStarted(of);
      case "JobSubmitted":
        return new JobSubmittedEvent(job(of), text(of, "jobName"), text(of, "userName"), time(of, "submitTime"),
            "hdfs://nn/job.xml", Collections.singletonMap(JobACL.VIEW_JOB, new AccessControlList("*")),
            text(of, "jobQueueName"));
      case "JobQueueChange":
        return new JobQueueChangeEvent(job(of), text(of, "jobQueueName"));
      case "JobPriorityChange":
        return new JobPriorityChangeEvent(job(of), JobPriority.HIGH);
      case "JobInfoChange":
        return new JobInfoChangeEvent(job(of), time(of, "submitTime"), time(of, "launchTime"));
      case "JobInited":
        return new JobInitedEvent(job(of), time(of, "launchTime"), 2, 1, "INITED", of.get("uberized").asBoolean());
      case "JobFinished":
        return new JobFinishedEvent(job(of), time(of, "finishTime"), 2, 1, 0, 0, 0, 0, counters(), counters(),
            new Counters());
      case "JobUnsuccessfulCompletion":
        return new JobUnsuccessfulCompletionEvent(job(of), time(of, "finishTime"), 2, 1, 0, 0, 0, 0,
            text(of, "jobStatus"), List.of("caf\u00e9 \u6f22: killed", "task_1_0001_m_000000 failed"));
      case "TaskStarted":
        return new TaskStartedEvent(TaskID.forName(text(of, "taskid")), time(of, "startTime"), kind(of), "/r/a,/r/b");
      case "TaskUpdated":
        return new TaskUpdatedEvent(TaskID.forName(text(of, "taskid")), time(of, "finishTime"));
      case "TaskFinished":
        return new TaskFinishedEvent(TaskID.forName(text(of, "taskid")),
            TaskAttemptID.forName(of.get("successfulAttemptId").get("string").asText()), time(of, "finishTime"),
            kind(of), "SUCCEEDED", counters(), 0);
      case "TaskFailed":
        return new TaskFailedEvent(TaskID.forName(text(of, "taskid")), time(of, "finishTime"), kind(of), "lost", "FAILED",
            null, counters(), 0);
      default:
        return attempt(name, of, TaskAttemptID.forName(text(of, "attemptId")));
    }
  }

  private static HistoryEvent attempt(String name, JsonNode of, TaskAttemptID id) {
    switch (name) {
      case "TaskAttemptStarted":
        return new TaskAttemptStartedEvent(id, kind(of), time(of, "startTime"), "node1", 8042, 13562,
            ContainerId.newContainerId(application(id.getJobID()), id.getId() + 2L), "NODE_LOCAL", "VIRGIN");
      case "MapAttemptFinished":
        return new MapAttemptFinishedEvent(id, kind(of), "SUCCEEDED", time(of, "finishTime"), time(of, "finishTime"),
            "node1", 8041, "/r", "done", counters(), SPLITS, 0);
      case "ReduceAttemptFinished":
        return new ReduceAttemptFinishedEvent(id, kind(of), "SUCCEEDED", time(of, "finishTime"),
            time(of, "finishTime"), time(of, "finishTime"), "node1", 8041, "/r", "done", counters(), SPLITS, 0);
      case "TaskAttemptFinished":
        return new TaskAttemptFinishedEvent(id, kind(of), TaskStatus.State.SUCCEEDED.toString(),
            time(of, "finishTime"), "/r", "node1", "done", counters(), 0);
      case "TaskAttemptUnsuccessfulCompletion":
        return new TaskAttemptUnsuccessfulCompletionEvent(id, kind(of), text(of, "status"), time(of, "finishTime"),
            "node1", 8041, "/r", "Error: attempt_1_0001_m_000000_0 of job_1_0001\n\tat a.b.C(D.java)", counters(),
            SPLITS, 0);
      default:
        throw new IllegalArgumentException(name);
    }
  }

  private static HistoryEvent amStarted(JsonNode of) {
    ApplicationAttemptId attempt = application(JobID.forName(text(of, "jobid")));
    return new AMStartedEvent(attempt, time(of, "startTime"), ContainerId.newContainerId(attempt, 1), "node1", 8041,
        8042, time(of, "startTime"));
  }

  private static ApplicationAttemptId application(org.apache.hadoop.mapreduce.JobID job) {
    long begun = Long.parseLong(job.getJtIdentifier());
    return ApplicationAttemptId.newInstance(ApplicationId.newInstance(begun, job.getId()), 1);
  }

  private static Counters counters() {
    Counters counters = new Counters();
    counters.findCounter(TaskCounter.SPILLED_RECORDS).increment(300);
    counters.findCounter("com.example.\u00d6ffnung", new String("Z\u00e4hler".getBytes(StandardCharsets.UTF_8),
        StandardCharsets.UTF_8)).increment(-5);
    return counters;
  }

  private static JobID job(JsonNode of) {
    return JobID.forName(text(of, "jobid"));
  }

  private static TaskType kind(JsonNode of) {
    return TaskType.valueOf(text(of, "taskType"));
  }

  private static String text(JsonNode of, String name) {
    return of.get(name).asText();
  }

  private static long time(JsonNode of, String name) {
    return of.get(name).asLong();
  }
}
