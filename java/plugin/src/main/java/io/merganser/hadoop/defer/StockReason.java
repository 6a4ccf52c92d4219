package io.merganser.hadoop.defer;

/** Why a map task merged its output as Hadoop does. */
public enum StockReason {
  /** The job or the node doesn't want deferred merges. */
  SWITCHED_OFF,
  /** The node's shuffle service said nothing of merging, so it can't. */
  NO_SERVICE,
  /** The node's shuffle service reads only older manifests. */
  OLD_SERVICE,
  /** Another attempt of the task went before: whatever made it fail must not be repeated. */
  RETRY,
  /** The task runs inside the application master. */
  UBER,
  /** Intermediate data is encrypted, with a key that the node doesn't have. */
  ENCRYPTED,
  /** Intermediate data is compressed, so a merged length isn't known before merging. */
  COMPRESSED,
  /** A combiner runs in the merge, so its length isn't known before merging. */
  COMBINER,
  /** Nobody said how the job's keys compare. */
  UNKNOWN_ORDER,
  /** What is registered for the job's keys is no description, or not what its comparator does. */
  WRONG_ORDER,
  /** Nothing, or one spill, which Hadoop only renames. */
  FEW_SPILLS,
  /** More spills than a merge at fetch time may open. */
  MANY_SPILLS,
  /** Records so small that merging them at fetch time costs more than it saves. */
  SMALL_RECORDS,
  /** Segments so small that reading them at fetch time costs more than it saves. */
  SMALL_SEGMENTS,
  /** The spills lie on several disks, because one was full. */
  SEVERAL_DISKS,
  /** Hadoop put the spills elsewhere than the shuffle service would look. */
  LAYOUT;

  /** The name of the job counter, in the group {@link DeferRules#COUNTERS}. */
  public String counter() {
    return "MAPS_STOCK_" + name();
  }
}
