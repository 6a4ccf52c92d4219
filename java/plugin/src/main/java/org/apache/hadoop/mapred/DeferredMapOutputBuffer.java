package org.apache.hadoop.mapred;

import io.merganser.hadoop.defer.DeferRules;
import io.merganser.hadoop.defer.Refusal;
import io.merganser.hadoop.defer.StockReason;
import io.merganser.hadoop.manifest.Manifest;
import io.merganser.hadoop.manifest.ManifestException;
import io.merganser.hadoop.order.JobKeyOrder;
import io.merganser.hadoop.order.MalformedKeyException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.io.DataInputBuffer;
import org.apache.hadoop.io.RawComparator;
import org.apache.hadoop.mapred.Task.TaskReporter;
import org.apache.hadoop.mapreduce.MRConfig;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.apache.hadoop.yarn.util.AuxiliaryServiceHelper;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

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
  private static final Logger LOG = LoggerFactory.getLogger(DeferredMapOutputBuffer.class);

  /** The name under which YARN knows Hadoop's shuffle service. */
  private static final String SHUFFLE_SERVICE = "mapreduce_shuffle";

  /** The permission that the user of the shuffle service needs, who is in the files' group. */
  private static final FsPermission SHUFFLE_PERMISSION = new FsPermission((short) 0640);

  /** The number of neighbouring keys on which a registered order is tested. */
  private static final int ORDER_SAMPLES = 1000;

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
    return AuxiliaryServiceHelper.getServiceDataFromEnv(SHUFFLE_SERVICE, System.getenv());
  }

  @Override
  public void flush() throws IOException, ClassNotFoundException, InterruptedException {
    if (kvbuffer == null) {
      super.flush();
      return;
    }
    Optional<Refusal> refusal = rules.beforeRecords();
    Spills spills = null;
    if (refusal.isEmpty()) {
      awaitSpill();
      boolean more = kvindex != kvend;
      refusal = judgeOutput(numSpills + (more ? 1 : 0));
      if (refusal.isEmpty() && more && sortSpillException == null) {
        spillTheRest();
      }
      if (refusal.isEmpty() && sortSpillException == null) {
        spills = findSpills();
        refusal = judgeSpills(spills);
      }
    }
    if (refusal.isPresent() || spills == null) {
      // If there are no spills, one has failed; Hadoop's own flush reports that.
      refusal.ifPresent(this::count);
      super.flush();
      return;
    }
    stopSpillThread();
    kvbuffer = null;
    writeOutput(spills);
    mapTask.getSortPhase().complete();
  }

  private Optional<Refusal> judgeOutput(int spills) {
    return rules.afterRecords(
        spills,
        reporter.getCounter(TaskCounter.MAP_OUTPUT_RECORDS).getCounter(),
        reporter.getCounter(TaskCounter.MAP_OUTPUT_BYTES).getCounter());
  }

  private void count(Refusal refusal) {
    LOG.info(
        "{}: merged by the task, {}: {}", mapTask.getTaskID(), refusal.reason(), refusal.detail());
    reporter.getCounter(DeferRules.COUNTERS, refusal.reason().counter()).increment(1);
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

  /** The spills' files and indexes. */
  private record Spills(List<Path> files, List<SpillRecord> indexes) {}

  private Spills findSpills() throws IOException {
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
    return new Spills(files, indexes);
  }

  /** The reason why these spills can't stay as they are; empty if they can. */
  private Optional<Refusal> judgeSpills(Spills spills) throws IOException {
    List<Path> files = spills.files();
    Path directory = files.get(0).getParent();
    for (Path file : files) {
      if (!file.getParent().equals(directory)) {
        return refuse(StockReason.SEVERAL_DISKS, file + " is not in " + directory);
      }
    }
    Path output = mapTask.getMapOutputFile().getOutputFileForWriteInVolume(files.get(0));
    try {
      java.nio.file.Path expected = Manifest.applicationDirectory(local(output));
      if (!expected.equals(local(directory).toAbsolutePath().normalize())) {
        return refuse(StockReason.LAYOUT, "the spills are in " + directory + ", not " + expected);
      }
    } catch (ManifestException e) {
      return refuse(StockReason.LAYOUT, e.getMessage());
    }
    FileSystem fs = FileSystem.getLocal(job).getRaw();
    for (int i = 0; i < files.size(); i++) {
      long length = fs.getFileStatus(files.get(i)).getLen();
      if (!fills(spills.indexes().get(i), length)) {
        return refuse(StockReason.LAYOUT, "the segments of " + files.get(i) + " leave gaps");
      }
    }
    return JobKeyOrder.isRegistered(job) ? testOrder(fs, spills) : Optional.empty();
  }

  /** Whether uncompressed segments fill a file from its first byte to its last. */
  private static boolean fills(SpillRecord index, long length) {
    long end = 0;
    for (int partition = 0; partition < index.size(); partition++) {
      IndexRecord at = index.getIndex(partition);
      if (at.startOffset != end || at.partLength != at.rawLength + Integer.BYTES) {
        return false;
      }
      end += at.partLength;
    }
    return end == length;
  }

  /**
   * Compares the registered order with the job's comparator, on neighbouring keys of the first
   * spills. With a wrong registration the reducers would silently get keys out of order.
   */
  private Optional<Refusal> testOrder(FileSystem fs, Spills spills) throws IOException {
    // No read-ahead, because the readers are left before their end.
    JobConf conf = new JobConf(job);
    conf.setBoolean(MRConfig.MAPRED_IFILE_READAHEAD, false);
    RawComparator<?> comparator = job.getOutputKeyComparator();
    int samples = ORDER_SAMPLES;
    for (int i = 0; i < spills.files().size() && samples > 0; i++) {
      try (FSDataInputStream in = fs.open(spills.files().get(i))) {
        SpillRecord index = spills.indexes().get(i);
        for (int partition = 0; partition < index.size() && samples > 0; partition++) {
          IndexRecord at = index.getIndex(partition);
          in.seek(at.startOffset);
          IFile.Reader<K, V> reader = new IFile.Reader<>(conf, in, at.partLength, null, null);
          byte[] last = null;
          DataInputBuffer key = new DataInputBuffer();
          DataInputBuffer value = new DataInputBuffer();
          for (; samples > 0 && reader.nextRawKey(key); samples--) {
            byte[] next = Arrays.copyOf(key.getData(), key.getLength());
            if (last != null && !agree(comparator, last, next)) {
              return refuse(
                  StockReason.WRONG_ORDER,
                  rules.order()
                      + " is registered, but "
                      + comparator.getClass().getName()
                      + " compares otherwise");
            }
            last = next;
            reader.nextRawValue(value);
          }
        }
      }
    }
    return Optional.empty();
  }

  /** Whether the two agree; the order may distinguish keys that are equal for the comparator. */
  private boolean agree(RawComparator<?> comparator, byte[] a, byte[] b) {
    int expected = comparator.compare(a, 0, a.length, b, 0, b.length);
    try {
      int found = rules.order().compare(a, 0, a.length, b, 0, b.length);
      return expected == 0 || Integer.signum(expected) == Integer.signum(found);
    } catch (MalformedKeyException e) {
      return false;
    }
  }

  private static Optional<Refusal> refuse(StockReason reason, String detail) {
    return Optional.of(new Refusal(reason, detail));
  }

  private void writeOutput(Spills spills) throws IOException {
    Manifest manifest = manifestOf(spills);
    byte[] bytes = manifest.toBytes();
    long length = writeIndexAndManifest(spills, manifest, bytes);
    reporter.getCounter(TaskCounter.MAP_OUTPUT_MATERIALIZED_BYTES).increment(length);
    reporter.getCounter(DeferRules.COUNTERS, DeferRules.DEFERRED).increment(1);
    reporter.getCounter(DeferRules.COUNTERS, DeferRules.BYTES_NOT_REWRITTEN).increment(length);
    LOG.info(
        "{}: merge deferred, {} spills of {} partitions, {} bytes not written again, order {}",
        mapTask.getTaskID(),
        spills.files().size(),
        manifest.partitions(),
        length,
        manifest.order());
  }

  private Manifest manifestOf(Spills spills) {
    List<Manifest.Spill> entries = new ArrayList<>(spills.files().size());
    for (int i = 0; i < spills.files().size(); i++) {
      SpillRecord index = spills.indexes().get(i);
      long[] lengths = new long[index.size()];
      for (int partition = 0; partition < lengths.length; partition++) {
        lengths[partition] = index.getIndex(partition).partLength;
      }
      entries.add(new Manifest.Spill(spills.files().get(i).getName(), lengths));
    }
    return new Manifest(rules.order(), entries);
  }

  /** Writes the two files and returns the bytes that a merged output would have. */
  private long writeIndexAndManifest(Spills spills, Manifest manifest, byte[] bytes)
      throws IOException {
    MapOutputFile names = mapTask.getMapOutputFile();
    Path output = names.getOutputFileForWriteInVolume(spills.files().get(0));
    Path outputIndex = names.getOutputIndexFileForWriteInVolume(spills.files().get(0));
    FileSystem fs = FileSystem.getLocal(job).getRaw();
    try (FSDataOutputStream out = fs.create(output)) {
      out.write(bytes);
    }
    SpillRecord index = new SpillRecord(manifest.partitions());
    long offset = bytes.length;
    for (int partition = 0; partition < manifest.partitions(); partition++) {
      long length = manifest.partLength(partition);
      index.putIndex(new IndexRecord(offset, length - Integer.BYTES, length), partition);
      offset += length;
    }
    index.writeToFile(outputIndex, job);
    FsPermission given = SHUFFLE_PERMISSION.applyUMask(FsPermission.getUMask(job));
    if (!SHUFFLE_PERMISSION.equals(given)) {
      fs.setPermission(output, SHUFFLE_PERMISSION);
      fs.setPermission(outputIndex, SHUFFLE_PERMISSION);
      for (Path spill : spills.files()) {
        fs.setPermission(spill, SHUFFLE_PERMISSION);
      }
    }
    return offset - bytes.length;
  }

  private static java.nio.file.Path local(Path path) {
    return java.nio.file.Path.of(path.toUri().getPath());
  }
}
