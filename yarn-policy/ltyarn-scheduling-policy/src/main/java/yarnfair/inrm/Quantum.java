package yarnfair.inrm;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiFunction;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.LeafView;

/**
 * LTYARN's Quantum Updater (6.2.1): how long running tasks are assumed to take. A queue's Q is the mean over all of its
 * applications, also of those that have ended; an application's the mean of its ended tasks, or what it was given.
 *
 * <p>A container begins and ends when it is first and last seen. How it ended is not seen: one that was killed teaches,
 * too, unless its application went with it.
 */
final class Quantum {
  private static final class Task {
    final long startMs;
    final long mb;
    final long vcores;

    Task(long startMs, long mb, long vcores) {
      this.startMs = startMs;
      this.mb = mb;
      this.vcores = vcores;
    }
  }

  private static final class App {
    double quantumMs;
    double sumMs;
    long ended;
    final Map<String, Task> running = new HashMap<>();
  }

  private static final class Leaf {
    final Map<String, App> apps = new HashMap<>();
    double leftSum;
    long left;
  }

  private final double firstMs;
  private final boolean adaptive;
  private final Map<String, Leaf> leaves = new HashMap<>();
  private final Map<String, Double> quanta = new HashMap<>();

  Quantum(double firstMs, boolean adaptive) {
    this.firstMs = firstMs;
    this.adaptive = adaptive;
  }

  private double of(String queue, Map<String, String> parents) {
    Double known = quanta.get(queue);
    if (known == null) {
      String parent = parents.get(queue);
      known = parent == null ? firstMs : of(parent, parents);
      quanta.put(queue, known);
    }
    return known;
  }

  /** What a leaf's applications hold at a look. {@code parents}: queue to parent, null for the root. */
  void look(String name, List<LeafView.App> apps, long now, Map<String, String> parents) {
    Leaf leaf = leaves.computeIfAbsent(name, key -> new Leaf());
    Set<String> there = new HashSet<>();
    boolean learnt = false;
    for (LeafView.App one : apps) {
      there.add(one.id());
      App app = leaf.apps.get(one.id());
      if (app == null) {
        continue;
      }
      Set<String> live = new HashSet<>();
      one.containers().forEach(container -> live.add(container.id()));
      for (var it = app.running.entrySet().iterator(); it.hasNext();) {
        var entry = it.next();
        if (!live.contains(entry.getKey())) {
          app.sumMs += now - entry.getValue().startMs;
          app.ended++;
          it.remove();
          if (adaptive) {
            app.quantumMs = app.sumMs / app.ended;
            learnt = true;
          }
        }
      }
    }
    if (learnt) {
      tuneUp(name, leaf, parents);
    }
    for (LeafView.App one : apps) {
      App app = leaf.apps.computeIfAbsent(one.id(), key -> {
        App fresh = new App();
        fresh.quantumMs = of(name, parents);
        return fresh;
      });
      for (LeafView.One container : one.containers()) {
        app.running.computeIfAbsent(container.id(), key -> new Task(now, container.mb(), container.vcores()));
      }
    }
    for (var it = leaf.apps.entrySet().iterator(); it.hasNext();) {
      var entry = it.next();
      if (!there.contains(entry.getKey())) {
        leaf.leftSum += entry.getValue().quantumMs;
        leaf.left++;
        it.remove();
      }
    }
  }

  private void tuneUp(String name, Leaf leaf, Map<String, String> parents) {
    double sum = leaf.leftSum;
    for (App app : leaf.apps.values()) {
      sum += app.quantumMs;
    }
    quanta.put(name, sum / (leaf.left + leaf.apps.size()));
    for (String above = parents.get(name); above != null; above = parents.get(above)) {
      double total = 0;
      int count = 0;
      for (var entry : parents.entrySet()) {
        if (above.equals(entry.getValue()) && quanta.containsKey(entry.getKey())) {
          total += quanta.get(entry.getKey());
          count++;
        }
      }
      quanta.put(above, total / count);
    }
  }

  /** What a leaf's running tasks are assumed to use yet: amount times ms (thesis eq. 5.15). */
  double ahead(String name, long now, long roundStart, BiFunction<Long, Long, Double> amount) {
    double sum = 0;
    Leaf leaf = leaves.get(name);
    if (leaf != null) {
      for (App app : leaf.apps.values()) {
        for (Task task : app.running.values()) {
          double rest = app.quantumMs - (now - Math.max(task.startMs, roundStart));
          sum += rest > 0 ? amount.apply(task.mb, task.vcores) * rest : 0;
        }
      }
    }
    return sum;
  }
}
