package org.apache.hadoop.mapred;

import io.merganser.hadoop.capability.Capability;
import io.merganser.hadoop.defer.DeferRules;
import io.merganser.hadoop.defer.Refusal;
import io.merganser.hadoop.order.KeyOrder;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.mapred.Task.TaskReporter;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.util.ReflectionUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The collector of a map task that may run on the node where its block is. It takes no memory for
 * sorting until the first record is collected: a task whose map ran on the node collects none.
 *
 * <pre>
 *   adopt(spills)   flush: one spill becomes file.out; several are deferred, or merged. If the job
 *                   compresses map outputs, they are always merged, even one, and compressed
 *   collect(...)    the next collector of mapreduce.job.map.output.collector.class does everything
 * </pre>
 *
 * @param <K> the class of keys
 * @param <V> the class of values
 */
public class NodeMapOutput<K, V> implements MapOutputCollector<K, V> {
  /** Most spills that a task may have to merge: it opens them all at once. */
  public static final int SPILLS_MAX = 1000;

  private static final Logger LOG = LoggerFactory.getLogger(NodeMapOutput.class);

  /** The collectors of the tasks in this JVM, for their record readers. */
  private static final Map<TaskAttemptID, NodeMapOutput<?, ?>> OPEN = new ConcurrentHashMap<>();

  /** How the node sorts: by the bytes of Text keys. */
  private static final KeyOrder NODE_ORDER = KeyOrder.parse("text");

  private MapOutputCollector.Context context;
  private MapTask mapTask;
  private JobConf job;
  private TaskReporter reporter;

  /** The collector that stands in for this one, once a record was collected. */
  private MapOutputCollector<K, V> next;

  private SpilledOutput adopted;
  private int adoptedCount;
  private long adoptedRecords;
  private long adoptedBytes;

  /** The collector of a task attempt of this JVM; empty if it has another one. */
  public static Optional<NodeMapOutput<?, ?>> of(
      org.apache.hadoop.mapreduce.TaskAttemptID attempt) {
    return Optional.ofNullable(OPEN.get(TaskAttemptID.downgrade(attempt)));
  }

  @Override
  public void init(MapOutputCollector.Context given) {
    context = given;
    mapTask = given.getMapTask();
    job = given.getJobConf();
    reporter = given.getReporter();
    OPEN.put(mapTask.getTaskID(), this);
  }

  /** The settings of the job. */
  public JobConf job() {
    return job;
  }

  /** The reporter of the task. */
  public Reporter reporter() {
    return reporter;
  }

  /** Tells Hadoop how much of the map is done, from 0 to 1. */
  public void mapProgress(float done) {
    reporter.setProgress(done);
  }

  /** Whether a record was collected; then spills can't be adopted any more. */
  public boolean hasRecords() {
    return next != null;
  }

  /** Spills to be written, and adopted when they are complete. */
  public ReceivedSpills receive() {
    return new ReceivedSpills(mapTask, job, Math.max(1, job.getNumReduceTasks()));
  }

  /**
   * Makes these spills the output of the task. Their keys must be Text and in order of their bytes.
   * From here on no record may be collected.
   *
   * @throws IllegalStateException if there are records or spills already, or too many or too few
   */
  public void adopt(ReceivedSpills spills) {
    if (next != null || adopted != null || spills.count() == 0 || spills.count() > SPILLS_MAX) {
      throw new IllegalStateException("can't adopt " + spills.count() + " spills");
    }
    adoptedCount = spills.count();
    adoptedRecords = spills.records();
    adoptedBytes = spills.bytes();
    adopted = spills.keep(reporter);
  }

  @Override
  public void collect(K key, V value, int partition) throws IOException, InterruptedException {
    if (adopted != null) {
      throw new IOException(
          "the mapper wrote a record although its split was mapped on the node. Only mappers that"
              + " write nothing without input may run there: remove merganser.node.ssdlet from the"
              + " job");
    }
    next().collect(key, value, partition);
  }

  @Override
  public void flush() throws IOException, InterruptedException, ClassNotFoundException {
    if (adopted == null) {
      next().flush();
      return;
    }
    if (adoptedCount > 1) {
      finishSeveral();
    } else if (job.getCompressMapOutput()) {
      adopted.merge(NODE_ORDER);
    } else {
      adopted.rename();
    }
    mapTask.getSortPhase().complete();
  }

  private void finishSeveral() throws IOException {
    DeferRules rules = DeferRules.ofCombinedSpills(job, mapTask.getTaskID(), serviceMetaData());
    Optional<Refusal> refusal = rules.afterRecords(adoptedCount, adoptedRecords, adoptedBytes);
    if (refusal.isEmpty()) {
      refusal = adopted.judge(rules);
    }
    if (refusal.isEmpty()) {
      adopted.defer(rules);
    } else {
      SpilledOutput.count(refusal.get(), mapTask, reporter);
      adopted.merge(NODE_ORDER);
    }
  }

  /** The metadata of the node's shuffle service, null if it has none. */
  ByteBuffer serviceMetaData() {
    return Capability.serviceMetaData();
  }

  @Override
  public void close() throws IOException, InterruptedException {
    OPEN.remove(mapTask.getTaskID(), this);
    if (next != null) {
      next.close();
    }
  }

  /** The collector that follows this one in the job's list, initialized as Hadoop would. */
  private MapOutputCollector<K, V> next() throws IOException {
    if (next != null) {
      return next;
    }
    List<Class<?>> named =
        Arrays.asList(
            job.getClasses(
                MRJobConfig.MAP_OUTPUT_COLLECTOR_CLASS_ATTR, MapTask.MapOutputBuffer.class));
    List<Class<?>> following = named.subList(named.indexOf(NodeMapOutput.class) + 1, named.size());
    if (following.isEmpty()) {
      following = List.of(MapTask.MapOutputBuffer.class);
    }
    Exception last = null;
    for (Class<?> each : following) {
      try {
        next = initialized(each);
        return next;
      } catch (IOException | ClassNotFoundException | RuntimeException e) {
        LOG.warn("{} can't be initialized", each.getName(), e);
        last = e;
      }
    }
    throw new IOException("no collector of the job could be initialized", last);
  }

  @SuppressWarnings("unchecked")
  private MapOutputCollector<K, V> initialized(Class<?> named)
      throws IOException, ClassNotFoundException {
    if (named == NodeMapOutput.class) {
      throw new IOException("it is named twice");
    }
    MapOutputCollector<K, V> collector =
        ReflectionUtils.newInstance(named.asSubclass(MapOutputCollector.class), job);
    collector.init(context);
    return collector;
  }
}
