package org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;

/** What a leaf's applications hold now. In this package because a queue shows its scheduler to nobody else. */
public final class LiveContainers {
  /** An application, and its containers but for its master's. */
  public record App(String id, List<One> containers) {}

  /** A container. */
  public record One(String id, long mb, long vcores) {}

  private LiveContainers() {}

  /** The applications of a leaf; none for a parent. */
  public static List<App> of(FSQueue queue) {
    List<App> found = new ArrayList<>();
    if (!(queue instanceof FSLeafQueue leaf)) {
      return found;
    }
    List<ApplicationAttemptId> attempts = new ArrayList<>();
    leaf.collectSchedulerApplications(attempts);
    for (ApplicationAttemptId attempt : attempts) {
      FSAppAttempt app = leaf.scheduler.getSchedulerApp(attempt);
      if (app == null) {
        continue;
      }
      List<One> containers = new ArrayList<>();
      for (RMContainer container : app.getLiveContainers()) {
        if (!container.isAMContainer()) {
          Resource size = container.getAllocatedResource();
          containers.add(new One(container.getContainerId().toString(), size.getMemorySize(), size.getVirtualCores()));
        }
      }
      found.add(new App(attempt.getApplicationId().toString(), containers));
    }
    return found;
  }
}
