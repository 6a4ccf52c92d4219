package org.apache.hadoop.mapred;

import io.merganser.hadoop.counter.OwnCounters;
import io.merganser.hadoop.defer.DeferRules;
import io.merganser.hadoop.defer.Refusal;
import io.merganser.hadoop.defer.StockReason;
import io.merganser.hadoop.manifest.Manifest;
import io.merganser.hadoop.manifest.ManifestException;
import io.merganser.hadoop.order.JobKeyOrder;
import io.merganser.hadoop.order.KeyOrder;
import io.merganser.hadoop.segment.OrderSample;
import io.merganser.hadoop.segment.Segment;
import io.merganser.hadoop.segment.SegmentMerge;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.io.compress.CodecPool;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.CompressionOutputStream;
import org.apache.hadoop.io.compress.Compressor;
import org.apache.hadoop.io.compress.DefaultCodec;
import org.apache.hadoop.mapred.Task.TaskReporter;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.apache.hadoop.util.ReflectionUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The spills of one map task, and three ways to make its output of them. The output is always
 * {@code file.out} with an index in Hadoop's form.
 *
 * <pre>
 *   {@link #rename}   one spill: it becomes the output
 *   {@link #defer}    several: the output is a {@link Manifest} of them, if {@link #judge} allows it
 *   {@link #merge}    they are merged now, without a combiner, and compressed if the job says so
 * </pre>
 */
final class SpilledOutput {
  private static final Logger LOG = LoggerFactory.getLogger(SpilledOutput.class);

  /** The permission that the user of the shuffle service needs, who is in the files' group. */
  private static final FsPermission SHUFFLE_PERMISSION = new FsPermission((short) 0640);

  /** Bytes of the buffers of a merge in the task, unless its spills need more. */
  private static final int MERGE_MEMORY = 8 << 20;

  private static final int COPY_BYTES = 64 << 10;

  private final MapTask mapTask;
  private final JobConf job;
  private final TaskReporter reporter;
  private final List<Path> files;
  private final List<SpillRecord> indexes;

  /**
   * @param files the spills, at least one; of equal keys, those of earlier spills come first
   * @param indexes the places of each spill's segments
   */
  SpilledOutput(
      MapTask mapTask,
      JobConf job,
      TaskReporter reporter,
      List<Path> files,
      List<SpillRecord> indexes) {
    this.mapTask = mapTask;
    this.job = job;
    this.reporter = reporter;
    this.files = List.copyOf(files);
    this.indexes = List.copyOf(indexes);
  }

  /** Counts and logs that a task merges its spills itself. */
  static void count(Refusal refusal, MapTask mapTask, TaskReporter reporter) {
    LOG.info(
        "{}: merged by the task, {}: {}", mapTask.getTaskID(), refusal.reason(), refusal.detail());
    OwnCounters.add(reporter::incrCounter, refusal.reason().counter(), 1);
  }

  /** The reason why these spills can't stay as they are; empty if they can. */
  Optional<Refusal> judge(DeferRules rules) throws IOException {
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
    FileSystem fs = localFs();
    for (int i = 0; i < files.size(); i++) {
      long length = fs.getFileStatus(files.get(i)).getLen();
      if (!fills(indexes.get(i), length)) {
        return refuse(StockReason.LAYOUT, "the segments of " + files.get(i) + " leave gaps");
      }
    }
    if (!JobKeyOrder.isRegistered(job)) {
      return Optional.empty();
    }
    List<Segment> all = new ArrayList<>();
    for (int partition = 0; partition < indexes.get(0).size(); partition++) {
      all.addAll(segments(partition));
    }
    return OrderSample.difference(job, rules.order(), all)
        .flatMap(how -> refuse(StockReason.WRONG_ORDER, how));
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

  private static Optional<Refusal> refuse(StockReason reason, String detail) {
    return Optional.of(new Refusal(reason, detail));
  }

  /** Leaves the spills as they are, writes the manifest and the index, and counts it. */
  void defer(DeferRules rules) throws IOException {
    Manifest manifest = manifest(rules.order());
    byte[] bytes = manifest.toBytes();
    long length = writeIndexAndManifest(manifest, bytes);
    reporter.getCounter(TaskCounter.MAP_OUTPUT_MATERIALIZED_BYTES).increment(length);
    OwnCounters.add(reporter::incrCounter, DeferRules.DEFERRED, 1);
    OwnCounters.add(reporter::incrCounter, DeferRules.BYTES_NOT_REWRITTEN, length);
    LOG.info(
        "{}: merge deferred, {} spills of {} partitions, {} bytes not written again, order {}",
        mapTask.getTaskID(),
        files.size(),
        manifest.partitions(),
        length,
        manifest.order());
  }

  private Manifest manifest(KeyOrder order) {
    List<Manifest.Spill> entries = new ArrayList<>(files.size());
    for (int i = 0; i < files.size(); i++) {
      SpillRecord index = indexes.get(i);
      long[] lengths = new long[index.size()];
      for (int partition = 0; partition < lengths.length; partition++) {
        lengths[partition] = index.getIndex(partition).partLength;
      }
      entries.add(new Manifest.Spill(files.get(i).getName(), lengths));
    }
    return new Manifest(order, entries);
  }

  /** Writes the two files and returns the bytes that a merged output would have. */
  private long writeIndexAndManifest(Manifest manifest, byte[] bytes) throws IOException {
    MapOutputFile names = mapTask.getMapOutputFile();
    Path output = names.getOutputFileForWriteInVolume(files.get(0));
    Path outputIndex = names.getOutputIndexFileForWriteInVolume(files.get(0));
    try (FSDataOutputStream out = localFs().create(output)) {
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
    List<Path> served = new ArrayList<>(files);
    served.add(output);
    served.add(outputIndex);
    letServiceRead(served);
    return offset - bytes.length;
  }

  /** Makes the only spill the output, as Hadoop does. */
  void rename() throws IOException {
    if (files.size() != 1) {
      throw new IllegalStateException(files.size() + " spills can't be renamed to one output");
    }
    MapOutputFile names = mapTask.getMapOutputFile();
    Path output = names.getOutputFileForWriteInVolume(files.get(0));
    Path outputIndex = names.getOutputIndexFileForWriteInVolume(files.get(0));
    FileSystem fs = localFs();
    fs.mkdirs(output.getParent());
    if (!fs.rename(files.get(0), output)) {
      throw new IOException("cannot rename " + files.get(0) + " to " + output);
    }
    indexes.get(0).writeToFile(outputIndex, job);
    letServiceRead(List.of(output, outputIndex));
    countMaterialized(output);
  }

  /**
   * Merges the spills into the output, compressed if the job says so, and deletes them.
   *
   * @throws RuntimeException if the codec of the job can't be used, as in stock Hadoop
   */
  void merge(KeyOrder order) throws IOException {
    Optional<CompressionCodec> codec = codec();
    long length = 0;
    for (Path file : files) {
      length += localFs().getFileStatus(file).getLen();
    }
    MapOutputFile names = mapTask.getMapOutputFile();
    Path output = names.getOutputFileForWrite(length);
    int partitions = indexes.get(0).size();
    SpillRecord index = new SpillRecord(partitions);
    long records = 0;
    try (FSDataOutputStream out = localFs().create(output)) {
      for (int partition = 0; partition < partitions; partition++) {
        List<Segment> segments = segments(partition);
        long start = out.getPos();
        if (codec.isEmpty()) {
          records += copyMerged(order, segments, out);
        } else {
          records += copyCompressed(order, segments, codec.get(), out);
        }
        index.putIndex(
            new IndexRecord(start, SegmentMerge.rawLength(segments), out.getPos() - start),
            partition);
        reporter.progress();
      }
    }
    Path outputIndex =
        names.getOutputIndexFileForWrite(
            (long) partitions * MapTask.MAP_OUTPUT_INDEX_RECORD_LENGTH);
    index.writeToFile(outputIndex, job);
    letServiceRead(List.of(output, outputIndex));
    for (Path file : files) {
      localFs().delete(file, false);
    }
    if (files.size() > 1) {
      reporter.getCounter(TaskCounter.SPILLED_RECORDS).increment(records);
    }
    countMaterialized(output);
  }

  private List<Segment> segments(int partition) {
    List<Segment> segments = new ArrayList<>(files.size());
    for (int i = 0; i < files.size(); i++) {
      IndexRecord at = indexes.get(i).getIndex(partition);
      segments.add(new Segment(local(files.get(i)), at.startOffset, at.rawLength, at.partLength));
    }
    return segments;
  }

  /** The codec of the job's map outputs; empty if they aren't compressed. */
  private Optional<CompressionCodec> codec() {
    if (!job.getCompressMapOutput()) {
      return Optional.empty();
    }
    return Optional.of(
        ReflectionUtils.newInstance(job.getMapOutputCompressorClass(DefaultCodec.class), job));
  }

  /**
   * Writes what {@link IFile.Writer} would: the compressed records and end marker, and a checksum
   * of these bytes. Returns the records that were merged.
   */
  private long copyCompressed(
      KeyOrder order, List<Segment> segments, CompressionCodec codec, OutputStream out)
      throws IOException {
    IFileOutputStream checked = new IFileOutputStream(out);
    Compressor compressor = CodecPool.getCompressor(codec, job);
    try {
      // Without a compressor Hadoop doesn't compress, on either side.
      CompressionOutputStream compressed =
          compressor == null ? null : codec.createOutputStream(checked, compressor);
      OutputStream content = compressed == null ? checked : compressed;
      // The merge ends with a checksum of its own, which is dropped: this output gets another one.
      // It is read all the same, as the merge verifies its input before it ends.
      long records =
          copyMerged(order, segments, new FirstBytes(content, SegmentMerge.rawLength(segments)));
      if (compressed != null) {
        compressed.finish();
      }
      checked.finish();
      return records;
    } finally {
      CodecPool.returnCompressor(compressor);
    }
  }

  /** Passes the first bytes on, and drops the others. */
  private static final class FirstBytes extends OutputStream {
    private final OutputStream out;
    private long left;

    FirstBytes(OutputStream out, long count) {
      this.out = out;
      left = count;
    }

    @Override
    public void write(int value) throws IOException {
      write(new byte[] {(byte) value}, 0, 1);
    }

    @Override
    public void write(byte[] bytes, int offset, int length) throws IOException {
      int passed = (int) Math.min(length, left);
      out.write(bytes, offset, passed);
      left -= passed;
    }
  }

  /** Returns the records that were merged. */
  private long copyMerged(KeyOrder order, List<Segment> segments, OutputStream out)
      throws IOException {
    int memory =
        (int)
            Math.min(
                Integer.MAX_VALUE,
                Math.max(MERGE_MEMORY, SegmentMerge.leastMemory(segments.size())));
    byte[] some = new byte[COPY_BYTES];
    try (SegmentMerge merge = new SegmentMerge(order, segments, memory)) {
      for (int n = merge.read(some, 0, some.length); n >= 0; ) {
        out.write(some, 0, n);
        reporter.progress();
        n = merge.read(some, 0, some.length);
      }
      return merge.records();
    }
  }

  private void countMaterialized(Path output) throws IOException {
    reporter
        .getCounter(TaskCounter.MAP_OUTPUT_MATERIALIZED_BYTES)
        .increment(localFs().getFileStatus(output).getLen());
  }

  /** Lets the user of the shuffle service read files that a strict umask would hide from it. */
  private void letServiceRead(List<Path> served) throws IOException {
    FsPermission given = SHUFFLE_PERMISSION.applyUMask(FsPermission.getUMask(job));
    if (!SHUFFLE_PERMISSION.equals(given)) {
      for (Path file : served) {
        localFs().setPermission(file, SHUFFLE_PERMISSION);
      }
    }
  }

  private FileSystem localFs() throws IOException {
    return FileSystem.getLocal(job).getRaw();
  }

  private static java.nio.file.Path local(Path path) {
    return java.nio.file.Path.of(path.toUri().getPath());
  }
}
