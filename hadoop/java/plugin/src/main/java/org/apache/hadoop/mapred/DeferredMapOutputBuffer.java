package org.apache.hadoop.mapred;

import io.merganser.hadoop.capability.Capability;
import io.merganser.hadoop.defer.DeferRules;
import io.merganser.hadoop.defer.Refusal;
import io.merganser.hadoop.manifest.Manifest;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapred.Task.TaskReporter;
import org.apache.hadoop.mapreduce.TaskCounter;

/**
 * The sort buffer of a map task that leaves its spills as they are, if {@link DeferRules} allow it.
 * Then the output is a {@link Manifest}, and the node's shuffle service merges a partition when it
 * is fetched. Otherwise the buffer merges as {@link MapTask.MapOutputBuffer} does.
 *
 * <p>The index of the output has Hadoop's form and the lengths of a merged output. Its offsets are
 * past the end of the manifest. So a shuffle service that doesn't know manifests would send nothing
 * rather than wrong bytes; but a task never defers on such a node.
 *
 * <pre>
 *   stock     spills --merge--> file.out          spills deleted
 *   deferred  spills            file.out: manifest of the spills
 *                               file.out.index: lengths as if merged
 * </pre>
 *
 * @param <K> the class of keys
 * @param <V> the class of values
 */
public class DeferredMapOutputBuffer<K, V> extends MapTask.MapOutputBuffer<K, V> {
  /** The ints of a record's metadata in the buffer. */
  private static final int META_INTS = 4;

  private static final int META_BYTES = META_INTS * Integer.BYTES;

  private MapTask mapTask;
  private JobConf job;
  private TaskReporter reporter;
  private DeferRules rules;

  @Override
  public void init(MapOutputCollector.Context context) throws IOException, ClassNotFoundException {
    mapTask = context.getMapTask();
    job = context.getJobConf();
    reporter = context.getReporter();
    rules = new DeferRules(job, mapTask.getTaskID(), serviceMetaData());
    if (rules.beforeRecords().isEmpty()) {
      mapTask.mapOutputFile = new SpillsOnOneDisk(mapTask.getMapOutputFile());
    }
    super.init(context);
  }

  /** The metadata of the node's shuffle service, null if it has none. */
  ByteBuffer serviceMetaData() {
    return Capability.serviceMetaData();
  }

  @Override
  public void flush() throws IOException, ClassNotFoundException, InterruptedException {
    if (kvbuffer == null) {
      super.flush();
      return;
    }
    Optional<Refusal> refusal = rules.beforeRecords();
    SpilledOutput spills = null;
    if (refusal.isEmpty()) {
      awaitSpill();
      boolean more = kvindex != kvend;
      refusal = judgeOutput(numSpills + (more ? 1 : 0));
      if (refusal.isEmpty() && more && sortSpillException == null) {
        spillTheRest();
      }
      if (refusal.isEmpty() && sortSpillException == null) {
        spills = findSpills();
        refusal = spills.judge(rules);
      }
    }
    if (refusal.isPresent() || spills == null) {
      // If there are no spills, one has failed; Hadoop's own flush reports that.
      refusal.ifPresent(why -> SpilledOutput.count(why, mapTask, reporter));
      super.flush();
      return;
    }
    stopSpillThread();
    kvbuffer = null;
    spills.defer(rules);
    mapTask.getSortPhase().complete();
  }

  private Optional<Refusal> judgeOutput(int spills) {
    return rules.afterRecords(
        spills,
        reporter.getCounter(TaskCounter.MAP_OUTPUT_RECORDS).getCounter(),
        reporter.getCounter(TaskCounter.MAP_OUTPUT_BYTES).getCounter());
  }

  /** Waits for the spill that is being written, if any, and frees its space. */
  private void awaitSpill() throws IOException {
    spillLock.lock();
    try {
      while (spillInProgress) {
        reporter.progress();
        spillDone.await();
      }
      // If the metadata doesn't end at the equator, the buffer still holds spilled records.
      if (sortSpillException == null
          && (kvend * Integer.BYTES + META_BYTES) % kvbuffer.length != alignedEquator()) {
        bufstart = equator;
        bufend = equator;
        kvstart = firstMeta();
        kvend = kvstart;
      }
    } catch (InterruptedException e) {
      throw new IOException("Interrupted while waiting for the writer", e);
    } finally {
      spillLock.unlock();
    }
  }

  /**
   * Lets the spill thread write the rest of the buffer. The buffer is empty afterwards, and its
   * state still allows Hadoop's own flush to merge.
   */
  private void spillTheRest() throws IOException {
    spillLock.lock();
    try {
      kvend = (kvindex + META_INTS) % (kvbuffer.length / Integer.BYTES);
      bufend = bufmark;
      spillInProgress = true;
      spillReady.signal();
      while (spillInProgress) {
        reporter.progress();
        spillDone.await();
      }
      equator = 0;
      bufstart = 0;
      bufend = 0;
      bufmark = 0;
      bufindex = 0;
      bufvoid = kvbuffer.length;
      kvindex = firstMeta();
      kvstart = kvindex;
      kvend = kvindex;
    } catch (InterruptedException e) {
      throw new IOException("Interrupted while waiting for the writer", e);
    } finally {
      spillLock.unlock();
    }
  }

  private int alignedEquator() {
    return equator - equator % META_BYTES;
  }

  /** The place of the first record's metadata, in ints: right before the equator. */
  private int firstMeta() {
    return (int)
        (((long) alignedEquator() - META_BYTES + kvbuffer.length)
            % kvbuffer.length
            / Integer.BYTES);
  }

  private void stopSpillThread() throws IOException {
    try {
      spillThread.interrupt();
      spillThread.join();
    } catch (InterruptedException e) {
      throw new IOException("Spill failed", e);
    }
  }

  private SpilledOutput findSpills() throws IOException {
    MapOutputFile names = mapTask.getMapOutputFile();
    List<Path> files = new ArrayList<>(numSpills);
    List<SpillRecord> indexes = new ArrayList<>(numSpills);
    for (int i = 0; i < numSpills; i++) {
      files.add(names.getSpillFile(i));
      // Hadoop keeps the first indexes in memory, up to a limit, and writes the others to files.
      indexes.add(
          i < indexCacheList.size()
              ? indexCacheList.get(i)
              : new SpillRecord(names.getSpillIndexFile(i), job));
    }
    return new SpilledOutput(mapTask, job, reporter, files, indexes);
  }
}
