package io.merganser.hadoop.defer;

/** The reasons for which a map task merges its output as stock Hadoop does. */
public enum StockReason {
  /** The job or the node has switched deferred merges off. */
  SWITCHED_OFF,
  /** The node's shuffle service doesn't say that it can merge. */
  NO_SERVICE,
  /** The node's shuffle service reads only older manifests. */
  OLD_SERVICE,
  /** An earlier attempt of the task failed, perhaps because its merge was deferred. */
  RETRY,
  /** The task runs inside the application master. */
  UBER,
  /** Intermediate data is encrypted, with a key that the node doesn't have. */
  ENCRYPTED,
  /** Intermediate data is compressed, so a merged length isn't known before merging. */
  COMPRESSED,
  /** A combiner runs in the merge, so its length isn't known before merging. */
  COMBINER,
  /** It isn't known how the job's keys compare. */
  UNKNOWN_ORDER,
  /** The order that is registered for the job's keys is malformed, or isn't the comparator's. */
  WRONG_ORDER,
  /** No spill, or one, which Hadoop only renames. */
  FEW_SPILLS,
  /** More spills than a merge at fetch time may open. */
  MANY_SPILLS,
  /** Records so small that merging them at fetch time costs more than it saves. */
  SMALL_RECORDS,
  /** Segments so small that reading them at fetch time costs more than it saves. */
  SMALL_SEGMENTS,
  /** So many spills and reducers that the shuffle service wouldn't read the manifest. */
  LARGE_MANIFEST,
  /** The spills are on several disks, because one was full. */
  SEVERAL_DISKS,
  /** The spills aren't where the shuffle service would look for them. */
  LAYOUT;

  /** The name of the job counter, in the group {@link DeferRules#COUNTERS}. */
  public String counter() {
    return "MAPS_STOCK_" + name();
  }
}
