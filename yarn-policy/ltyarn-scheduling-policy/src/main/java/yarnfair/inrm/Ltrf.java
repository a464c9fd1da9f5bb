package yarnfair.inrm;

/** LTRF (LTYARN Algorithm 1): the leaf with the least accumulated resources over its weight, whatever the tree. */
public final class Ltrf extends LongTermPolicy {
  /** For the scheduler, which makes one by reflection. */
  public Ltrf() {
    super("ltrf", true, false);
  }
}
