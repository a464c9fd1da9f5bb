package yarnfair.inrm;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FSParentQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FSQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.LeafView;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Accumulated resources of all leaf queues of this ResourceManager (LTYARN, tang-thesis section 5).
 *
 * <p>The Fair Scheduler tells a policy nothing of time. So usage is looked at before each decision, and every
 * {@code observe_ms} besides by a thread of its own; between two looks a queue is taken to have held what it held at
 * the first. Queues are read before the lock is taken: the scheduler's thread may hold queues' locks when it asks for
 * an order, and waits for nobody here.
 */
final class Accounts {
  private static final Logger LOG = LoggerFactory.getLogger(Accounts.class);
  /** As for weights from outside: a weight of 0 is the least that there is. */
  private static final double LEAST_WEIGHT = 1e-3;
  /** Made when a policy first asks for it: an error of its settings is that policy's, not this class's. */
  private static volatile Accounts instance;

  /** One leaf's figures; resources in the measure times milliseconds. */
  private static final class Account {
    long usedMb;
    long usedVcores;
    double counted;
    double weight;
    boolean asking;
    long backlogMs = -1;
    long lastStartMs = -1;
    long starts;
    /** Pseudo accumulated resources, fixed at the round arrival. */
    double phi;
    boolean arrived;
    boolean active;
  }

  /** What a look at one queue gives. {@code asking}: for containers; {@code able}: it would be given one now. */
  private record Reading(String name, String parent, boolean leaf, double weight, long mb, long vcores,
      boolean asking, boolean able, long starts, List<LeafView.App> apps) {}

  final Settings settings;
  private final Map<String, Account> leaves = new HashMap<>();
  /** Null: the plain integral. */
  private final Quantum quantum;
  private volatile FSQueue root;
  private volatile LongSupplier clock = () -> System.nanoTime() / 1_000_000;
  private boolean watching;
  private long last = Long.MIN_VALUE;
  private long roundStart;
  private long roundEnd;
  private double totalMb;
  private double totalVcores;

  private Accounts(Settings settings) {
    this.settings = settings;
    this.quantum = settings.quantumMs < 0 ? null : new Quantum(settings.quantumMs, settings.adaptive);
  }

  /** Those of this ResourceManager. IllegalArgumentException for settings that make no sense, at the first call. */
  static Accounts get() {
    if (instance == null) {
      synchronized (Accounts.class) {
        if (instance == null) {
          instance = new Accounts(Settings.load());
        }
      }
    }
    return instance;
  }

  /**
   * Begins anew, with the settings as they are now and another clock (ms): for tests, which have the scheduler's time
   * in their hand. No thread looks at usage then.
   */
  static void restart(LongSupplier milliseconds) {
    Accounts fresh = new Accounts(Settings.load());
    fresh.clock = milliseconds;
    fresh.watching = true;
    instance = fresh;
  }

  /** Looks at all queues now, once the scheduler has shown one. */
  static void observe() {
    get().look();
  }

  /** The queue tree is the one that this queue belongs to. */
  void found(FSQueue queue) {
    FSQueue top = queue;
    while (top.getParent() != null) {
      top = top.getParent();
    }
    if (top == root) {
      return;
    }
    synchronized (this) {
      root = top;
      if (!watching && settings.observeMs > 0) {
        watching = true;
        Thread thread = new Thread(this::watch, "long-term fairness");
        thread.setDaemon(true);
        thread.start();
        LOG.info("Accumulated resources are counted: {}", settings);
      }
    }
    look();
  }

  /** The cluster's resources, as the scheduler divides them. */
  void cluster(Resource total) {
    synchronized (this) {
      totalMb = total.getMemorySize();
      totalVcores = total.getVirtualCores();
    }
  }

  private void watch() {
    while (true) {
      try {
        Thread.sleep(settings.observeMs);
        look();
      } catch (InterruptedException error) {
        return;
      } catch (RuntimeException error) {
        LOG.warn("Usage could not be looked at", error);
      }
    }
  }

  /** A look at all queues: at what leaves' applications hold, and at which leaves would be given something, if asked. */
  private List<Reading> read(boolean containers, boolean limits) {
    List<Reading> found = new ArrayList<>();
    if (root != null) {
      read(root, found, containers, limits);
    }
    return found;
  }

  private static void read(FSQueue queue, List<Reading> found, boolean containers, boolean limits) {
    List<FSQueue> children = queue.getChildQueues();
    Resource usage = queue.getResourceUsage();
    FSQueue parent = queue.getParent();
    boolean leaf = !(queue instanceof FSParentQueue);
    boolean asking = leaf
        && (queue.getMetrics().getPendingMB() > 0 || queue.getMetrics().getPendingVirtualCores() > 0);
    found.add(new Reading(queue.getName(), parent == null ? null : parent.getName(), leaf,
        Math.max(queue.getWeight(), LEAST_WEIGHT),
        usage.getMemorySize(), usage.getVirtualCores(), asking, limits && asking && LeafView.mayGrow(queue),
        leaf ? queue.getMetrics().getAggregateAllocatedContainers() : 0,
        containers ? LeafView.live(queue) : null));
    for (FSQueue child : children) {
      read(child, found, containers, limits);
    }
  }

  /** Containers are looked at here alone, as LTYARN's Quantum Updater does, "periodically": not before each decision. */
  private void look() {
    long now = clock.getAsLong();
    List<Reading> readings = read(quantum != null, false);
    synchronized (this) {
      account(now, readings);
    }
  }

  private double amount(long mb, long vcores) {
    switch (settings.measure) {
      case MEMORY:
        return mb;
      case VCORES:
        return vcores;
      default:
        return Math.max(totalMb > 0 ? mb / totalMb : 0, totalVcores > 0 ? vcores / totalVcores : 0);
    }
  }

  private double whole() {
    switch (settings.measure) {
      case MEMORY:
        return totalMb;
      case VCORES:
        return totalVcores;
      default:
        return 1;
    }
  }

  /** Eq. (5.7): what exceeds the queue's share over all leaves counts eta. */
  private double rate(Account account, double weights) {
    double held = amount(account.usedMb, account.usedVcores);
    if (settings.discount == 1.0) {
      return held;
    }
    double due = account.weight / weights * whole();
    return held <= due ? held : due + (held - due) * settings.discount;
  }

  private void account(long now, List<Reading> readings) {
    if (last == Long.MIN_VALUE) {
      last = now;
      roundStart = now;
      roundEnd = now + settings.roundMs;
    }
    if (now < last) {
      return;  // another thread's look was later
    }
    double weights = 0;
    for (Account account : leaves.values()) {
      weights += account.weight;
    }
    if (settings.roundMs > 0 && now >= roundEnd) {
      long rounds = (now - roundEnd) / settings.roundMs + 1;
      roundStart = roundEnd + (rounds - 1) * settings.roundMs;
      roundEnd = roundStart + settings.roundMs;
      for (Account account : leaves.values()) {
        account.counted = 0;
        account.phi = 0;
        account.arrived = account.active;
      }
    }
    long since = Math.max(last, roundStart);
    if (now > since) {
      for (Account account : leaves.values()) {
        account.counted += (now - since) * rate(account, weights);
      }
    }
    last = now;
    for (Reading reading : readings) {
      if (!reading.leaf) {
        continue;
      }
      Account account = leaves.computeIfAbsent(reading.name, name -> new Account());
      account.usedMb = reading.mb;
      account.usedVcores = reading.vcores;
      account.weight = reading.weight;
      if (reading.asking != account.asking) {
        account.backlogMs = reading.asking ? now : -1;
        account.asking = reading.asking;
      }
      if (reading.starts > account.starts) {
        account.lastStartMs = now;
      }
      account.starts = reading.starts;
      account.active = reading.mb > 0 || reading.vcores > 0 || reading.asking;
    }
    if (quantum != null) {
      Map<String, String> parents = new HashMap<>();
      readings.forEach(reading -> parents.put(reading.name, reading.parent));
      for (Reading reading : readings) {
        if (reading.leaf && reading.apps != null) {
          quantum.look(reading.name, reading.apps, now, parents);
        }
      }
    }
    if (settings.pseudo) {
      arrive(now);
    }
    long known = readings.stream().filter(Reading::leaf).count();
    if (known > 0 && leaves.size() > known) {
      // A queue that was removed begins anew when it comes back.
      leaves.keySet().retainAll(readings.stream().filter(Reading::leaf).map(Reading::name).toList());
    }
  }

  /** Eq. (5.16), fixed at the arrival: who comes begins where the richest that is active stands, for its weight. */
  private void arrive(long now) {
    for (Account account : leaves.values()) {
      if (account.arrived || !account.active) {
        continue;
      }
      double highest = 0;
      for (Map.Entry<String, Account> other : leaves.entrySet()) {
        if (other.getValue().arrived && other.getValue().active) {
          highest = Math.max(highest, total(other.getKey(), other.getValue(), now) / other.getValue().weight);
        }
      }
      account.arrived = true;
      account.phi = account.weight * highest;
    }
  }

  /** f_i: counted, pseudo, and what running tasks are assumed to use yet (eq. 5.13). */
  private double total(String name, Account account, long now) {
    double total = account.counted + account.phi;
    return quantum == null ? total : total + quantum.ahead(name, now, roundStart, this::amount);
  }

  /**
   * The keys of all queues at this moment; the smaller is served first.
   *
   * <p>A leaf that would be given nothing (at a maximum, its masters held back, its ask not seen) does not wait for its
   * turn: what is free would go to others below the same ancestor.
   *
   * @param flat a parent is as urgent as its most urgent leaf that may have more; else its own sum over its own weight
   *     decides
   * @param lift Algorithm 2: the leaf that is furthest behind comes first, with its ancestors, when it has waited T_wait
   */
  Map<String, Double> keys(boolean flat, boolean lift) {
    long now = clock.getAsLong();
    List<Reading> readings = read(false, flat || lift);
    Map<String, Reading> by = new HashMap<>();
    Map<String, Double> keys = new HashMap<>();
    synchronized (this) {
      account(now, readings);
      String best = null;
      double least = 0;
      for (Reading reading : readings) {
        by.put(reading.name, reading);
      }
      Map<String, Double> sums = new HashMap<>();
      Map<String, Double> held = new HashMap<>();
      for (Reading reading : readings) {
        if (!reading.leaf) {
          continue;
        }
        Account account = leaves.get(reading.name);
        double counted = total(reading.name, account, now);
        double key = counted / reading.weight;
        keys.put(reading.name, key);
        for (String above = reading.parent; above != null; above = by.get(above).parent) {
          if (!flat) {
            sums.merge(above, counted, Double::sum);
          } else if (reading.asking) {
            (reading.able ? keys : held).merge(above, key, Math::min);
          }
        }
        if (reading.able
            && (best == null || key < least || (key == least && reading.name.compareTo(best) < 0))) {
          best = reading.name;
          least = key;
        }
      }
      // Where none that asks would be given something, the group's turn does no harm: nobody else in it takes what is free.
      held.forEach(keys::putIfAbsent);
      sums.forEach((name, sum) -> keys.put(name, sum / by.get(name).weight));
      if (lift && settings.waitMs >= 0 && best != null) {
        Account account = leaves.get(best);
        if (now - Math.max(account.backlogMs, account.lastStartMs) >= settings.waitMs) {
          for (String name = best; name != null; name = by.get(name).parent) {
            keys.put(name, -1.0);
          }
        }
      }
    }
    return keys;
  }
}
