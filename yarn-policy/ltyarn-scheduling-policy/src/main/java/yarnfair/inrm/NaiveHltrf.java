package yarnfair.inrm;

/** LTRF level by level: a group's accumulated resources are those of its leaves together, over its own weight. */
public final class NaiveHltrf extends LongTermPolicy {
  /** For the scheduler, which makes one by reflection. */
  public NaiveHltrf() {
    super("naive-hltrf", false, false);
  }
}
