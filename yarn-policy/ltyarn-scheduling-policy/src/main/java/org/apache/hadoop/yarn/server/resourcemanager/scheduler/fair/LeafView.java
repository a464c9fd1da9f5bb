package org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair;

import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.PendingAsk;
import org.apache.hadoop.yarn.server.scheduler.SchedulerRequestKey;
import org.apache.hadoop.yarn.util.resource.Resources;

/** A leaf's applications. In this package because a queue shows its scheduler and its limits to nobody else. */
public final class LeafView {
  /** An application, and its containers but for its master's. */
  public record App(String id, List<One> containers) {}

  /** A container. */
  public record One(String id, long mb, long vcores) {}

  private LeafView() {}

  /** What the applications of a leaf hold now; none for a parent. */
  public static List<App> live(FSQueue queue) {
    List<App> found = new ArrayList<>();
    if (!(queue instanceof FSLeafQueue leaf)) {
      return found;
    }
    for (FSAppAttempt app : apps(leaf)) {
      List<One> containers = new ArrayList<>();
      for (RMContainer container : app.getLiveContainers()) {
        if (!container.isAMContainer()) {
          Resource size = container.getAllocatedResource();
          containers.add(new One(container.getContainerId().toString(), size.getMemorySize(), size.getVirtualCores()));
        }
      }
      found.add(new App(app.getApplicationId().toString(), containers));
    }
    return found;
  }

  /**
   * Whether a leaf would be given a container now, were there room for what it asks on some node.
   *
   * <p>Not where every application that asks is held back by a limit on running applications or on their masters, has
   * asked since the last update only, or asks for more than the maxima of its leaf and of those above it leave.
   */
  public static boolean mayGrow(FSQueue queue) {
    if (!(queue instanceof FSLeafQueue leaf)) {
      return false;
    }
    Set<FSAppAttempt> held = Collections.newSetFromMap(new IdentityHashMap<>());
    held.addAll(leaf.getCopyOfNonRunnableAppSchedulables());
    for (FSAppAttempt app : apps(leaf)) {
      if (!held.contains(app) && !Resources.isNone(app.getPendingDemand()) && mayAsk(leaf, app)) {
        return true;
      }
    }
    return false;
  }

  private static List<FSAppAttempt> apps(FSLeafQueue leaf) {
    List<ApplicationAttemptId> attempts = new ArrayList<>();
    leaf.collectSchedulerApplications(attempts);
    List<FSAppAttempt> found = new ArrayList<>(attempts.size());
    for (ApplicationAttemptId attempt : attempts) {
      FSAppAttempt app = leaf.scheduler.getSchedulerApp(attempt);
      if (app != null) {
        found.add(app);
      }
    }
    return found;
  }

  /** Whether the AM share lets an application have its master, and a maximum something of what it asks for. */
  private static boolean mayAsk(FSLeafQueue leaf, FSAppAttempt app) {
    boolean waits = !app.isAmRunning() && !app.getUnmanagedAM();
    for (SchedulerRequestKey key : app.getSchedulerKeys()) {
      PendingAsk ask = app.getPendingAsk(key, ResourceRequest.ANY);
      Resource size = ask.getPerAllocationResource();
      if (waits) {
        // Its first ask is the master's.
        if (ask.getCount() == 0 || !leaf.canRunAppAM(size)) {
          return false;
        }
        waits = false;
      }
      if (ask.getCount() > 0 && leaf.fitsInMaxShare(size)) {
        return true;
      }
    }
    return false;
  }
}
