package yarnfair.inrm;

/** H-LTRF (LTYARN Algorithm 2): level by level, but a leaf that is furthest behind and has waited T_wait comes first. */
public final class Hltrf extends LongTermPolicy {
  /** For the scheduler, which makes one by reflection. */
  public Hltrf() {
    super("hltrf", false, true);
  }
}
