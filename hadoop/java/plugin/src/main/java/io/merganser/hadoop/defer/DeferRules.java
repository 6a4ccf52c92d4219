package io.merganser.hadoop.defer;

import io.merganser.hadoop.capability.Capability;
import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.counter.OwnCounters;
import io.merganser.hadoop.manifest.Manifest;
import io.merganser.hadoop.order.JobKeyOrder;
import io.merganser.hadoop.order.KeyOrder;
import java.nio.ByteBuffer;
import java.util.Optional;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.TaskAttemptID;
import org.apache.hadoop.mapreduce.CryptoUtils;
import org.apache.hadoop.mapreduce.MRJobConfig;

/**
 * Decides whether one map task defers its merge. The rules that don't depend on the output are
 * checked before the first record, the others after the last one.
 */
public final class DeferRules {
  /** The group of the job counters that count decisions. */
  public static final String COUNTERS = OwnCounters.GROUP;

  /** Counts map tasks whose merge was deferred. */
  public static final String DEFERRED = "MAPS_DEFERRED";

  /** Counts bytes of map outputs that stock Hadoop would have written again. */
  public static final String BYTES_NOT_REWRITTEN = "MAP_OUTPUT_BYTES_NOT_REWRITTEN";

  /** Set by Hadoop in the configuration of a task that runs inside the application master. */
  private static final String UBERIZED = "mapreduce.task.uberized";

  private final JobConf job;
  private final boolean combined;
  private KeyOrder order;
  private final Optional<Refusal> early;

  /**
   * The rules for an attempt.
   *
   * @param serviceMetaData the metadata of the node's shuffle service, null if it has none
   */
  public DeferRules(JobConf job, TaskAttemptID attempt, ByteBuffer serviceMetaData) {
    this(job, attempt, serviceMetaData, false);
  }

  private DeferRules(
      JobConf job, TaskAttemptID attempt, ByteBuffer serviceMetaData, boolean combined) {
    this.job = job;
    this.combined = combined;
    this.early = decide(attempt, Capability.versionIn(serviceMetaData));
  }

  /**
   * The rules for an attempt whose spills were combined before they were written. A job's combiner
   * may run any number of times, so the merge can do without it.
   *
   * @param serviceMetaData the metadata of the node's shuffle service, null if it has none
   */
  public static DeferRules ofCombinedSpills(
      JobConf job, TaskAttemptID attempt, ByteBuffer serviceMetaData) {
    return new DeferRules(job, attempt, serviceMetaData, true);
  }

  private Optional<Refusal> decide(TaskAttemptID attempt, Optional<Integer> service) {
    if (!job.getBoolean(Keys.DEFER, Keys.DEFAULT_DEFER)) {
      return refuse(StockReason.SWITCHED_OFF, Keys.DEFER + " is false");
    }
    if (job.getBoolean(UBERIZED, false)) {
      return refuse(StockReason.UBER, "the task runs inside the application master");
    }
    if (service.isEmpty()) {
      return refuse(
          StockReason.NO_SERVICE, "this node's shuffle service doesn't merge at fetch time");
    }
    if (service.get() < Manifest.VERSION) {
      return refuse(
          StockReason.OLD_SERVICE,
          "this node's shuffle service reads manifests up to version "
              + service.get()
              + ", this task writes version "
              + Manifest.VERSION);
    }
    if (attempt.getId() != 0) {
      return refuse(StockReason.RETRY, "this is attempt " + attempt.getId());
    }
    if (CryptoUtils.isEncryptedSpillEnabled(job)) {
      return refuse(StockReason.ENCRYPTED, MRJobConfig.MR_ENCRYPTED_INTERMEDIATE_DATA + " is true");
    }
    if (job.getCompressMapOutput()) {
      return refuse(StockReason.COMPRESSED, MRJobConfig.MAP_OUTPUT_COMPRESS + " is true");
    }
    boolean combiner =
        job.getCombinerClass() != null || job.get(MRJobConfig.COMBINE_CLASS_ATTR) != null;
    if (combiner && !combined) {
      return refuse(StockReason.COMBINER, "the job has a combiner");
    }
    return decideOrder();
  }

  private Optional<Refusal> decideOrder() {
    Optional<KeyOrder> found;
    try {
      found = JobKeyOrder.of(job);
    } catch (IllegalArgumentException e) {
      return refuse(StockReason.WRONG_ORDER, e.getMessage());
    }
    if (found.isEmpty()) {
      return refuse(
          StockReason.UNKNOWN_ORDER,
          job.getOutputKeyComparator().getClass().getName()
              + " on keys of "
              + job.getMapOutputKeyClass().getName()
              + " is not known and has no "
              + Keys.ORDER_PREFIX
              + "CLASS");
    }
    order = found.get();
    return Optional.empty();
  }

  /** The reason not to defer the merge, as far as known before any record; empty if it may be. */
  public Optional<Refusal> beforeRecords() {
    return early;
  }

  /**
   * How the keys compare.
   *
   * @throws IllegalStateException if {@link #beforeRecords} refused
   */
  public KeyOrder order() {
    if (order == null) {
      throw new IllegalStateException("no order after a refusal");
    }
    return order;
  }

  /**
   * The reason not to defer the merge of this output; empty if the merge is to be deferred.
   *
   * @param spills the number of all spills
   * @param records the number of records in them
   * @param bytes the bytes of all keys and values
   */
  public Optional<Refusal> afterRecords(int spills, long records, long bytes) {
    if (early.isPresent()) {
      return early;
    }
    int spillsMin = Math.max(2, job.getInt(Keys.MIN_SPILLS, Keys.DEFAULT_MIN_SPILLS));
    if (spills < spillsMin) {
      return refuse(StockReason.FEW_SPILLS, below(spills, "spills", spillsMin, Keys.MIN_SPILLS));
    }
    int spillsMax = job.getInt(Keys.MAX_SPILLS, Keys.DEFAULT_MAX_SPILLS);
    if (spills > spillsMax) {
      return refuse(
          StockReason.MANY_SPILLS,
          spills + " spills are more than " + Keys.MAX_SPILLS + ", " + spillsMax);
    }
    int reducers = Math.max(1, job.getNumReduceTasks());
    if (!Manifest.fits(order, spills, reducers)) {
      return refuse(
          StockReason.LARGE_MANIFEST,
          spills
              + " spills for "
              + reducers
              + " reducers don't fit into a manifest, which has at most "
              + Manifest.SPILLS_MAX
              + " spills and "
              + Manifest.BYTES_MAX
              + " bytes");
    }
    long recordBytes = records == 0 ? 0 : bytes / records;
    long recordMin = job.getLong(Keys.MIN_RECORD_BYTES, Keys.DEFAULT_MIN_RECORD_BYTES);
    if (recordBytes < recordMin) {
      return refuse(
          StockReason.SMALL_RECORDS,
          below(recordBytes, "bytes per record", recordMin, Keys.MIN_RECORD_BYTES));
    }
    long segmentBytes = bytes / ((long) spills * reducers);
    long segmentMin = job.getLong(Keys.MIN_SEGMENT_BYTES, Keys.DEFAULT_MIN_SEGMENT_BYTES);
    if (segmentBytes < segmentMin) {
      return refuse(
          StockReason.SMALL_SEGMENTS,
          below(segmentBytes, "bytes per segment", segmentMin, Keys.MIN_SEGMENT_BYTES));
    }
    return Optional.empty();
  }

  private static String below(long found, String what, long least, String key) {
    return found + " " + what + " are fewer than " + key + ", " + least;
  }

  private static Optional<Refusal> refuse(StockReason reason, String detail) {
    return Optional.of(new Refusal(reason, detail));
  }
}
