package yarnfair.inrm;

import java.util.Collection;
import java.util.Comparator;
import java.util.Map;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FSQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.Schedulable;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.policies.FairSharePolicy;

/**
 * Queues by accumulated resources instead of by what they hold now; shares, headroom and the order of a leaf's
 * applications stay those of the {@code fair} policy. Queues without demand come last and those below their minimum
 * share first, as there; ties go by name.
 */
public abstract class LongTermPolicy extends FairSharePolicy {
  private final String name;
  private final boolean flat;
  private final boolean lift;

  LongTermPolicy(String name, boolean flat, boolean lift) {
    this.name = name;
    this.flat = flat;
    this.lift = lift;
    // Settings that make no sense fail here: whoever loads the allocation file reports that, and keeps the one before.
    Accounts.get();
  }

  @Override
  public String getName() {
    return name;
  }

  @Override
  public Comparator<Schedulable> getComparator() {
    // One order for one sort: keys must not move while a tree set is filled.
    return new Order(Accounts.get().keys(flat, lift), super.getComparator());
  }

  @Override
  public void computeShares(Collection<? extends Schedulable> schedulables, Resource totalResources) {
    found(schedulables, totalResources);
    super.computeShares(schedulables, totalResources);
  }

  @Override
  public void computeSteadyShares(Collection<? extends FSQueue> queues, Resource totalResources) {
    found(queues, totalResources);
    super.computeSteadyShares(queues, totalResources);
  }

  private static void found(Collection<? extends Schedulable> schedulables, Resource total) {
    for (Schedulable one : schedulables) {
      if (one instanceof FSQueue queue) {
        if (queue.getParent() != null && queue.getParent().getParent() == null) {
          Accounts.get().cluster(total);
        }
        Accounts.get().found(queue);
        return;
      }
    }
  }

  private record Order(Map<String, Double> keys, Comparator<Schedulable> fair) implements Comparator<Schedulable> {
    @Override
    public int compare(Schedulable one, Schedulable other) {
      if (!(one instanceof FSQueue) || !(other instanceof FSQueue)) {
        return fair.compare(one, other);
      }
      long demand = one.getDemand().getMemorySize();
      long otherDemand = other.getDemand().getMemorySize();
      if ((demand == 0) != (otherDemand == 0)) {
        return demand == 0 ? 1 : -1;
      }
      boolean needy = needy(one, demand);
      if (needy != needy(other, otherDemand)) {
        return needy ? -1 : 1;
      }
      int found = Double.compare(
          keys.getOrDefault(one.getName(), Double.MAX_VALUE), keys.getOrDefault(other.getName(), Double.MAX_VALUE));
      return found != 0 ? found : one.getName().compareTo(other.getName());
    }

    private static boolean needy(Schedulable one, long demand) {
      return one.getResourceUsage().getMemorySize() < Math.min(one.getMinShare().getMemorySize(), demand);
    }
  }
}
