package org.apache.hadoop.mapreduce.task.reduce;

import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.nativemerge.NativeLibrary;
import io.merganser.hadoop.order.KeyOrder;
import io.merganser.hadoop.reduce.FileMerge;
import io.merganser.hadoop.reduce.MergedRecords;
import io.merganser.hadoop.reduce.ReduceCounter;
import io.merganser.hadoop.reduce.StockPasses;
import io.merganser.hadoop.segment.Segment;
import io.merganser.hadoop.segment.SegmentMerge;
import java.io.Closeable;
import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.RawComparator;
import org.apache.hadoop.mapred.IFile;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.Merger;
import org.apache.hadoop.mapred.RawKeyValueIterator;
import org.apache.hadoop.mapred.ShuffleConsumerPlugin;
import org.apache.hadoop.mapred.Task;
import org.apache.hadoop.mapreduce.CryptoUtils;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.TaskID;
import org.apache.hadoop.mapreduce.security.IntermediateEncryptedStream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Holds what a reduce task fetched, and merges it once.
 *
 * <p>Hadoop's own manager writes files that it has read already: whenever there are many, and again
 * before the reducer starts, until no more than {@code mapreduce.task.io.sort.factor} are left.
 * This one only collects files; merging them costs no write, because it happens while the reducer
 * reads.
 *
 * <pre>
 *   fetched  in memory --+-- too much of it --> a file
 *                        |                        |
 *                        | what may remain        |     files fetched
 *                        v                        v       v
 *                      Hadoop's merge <---- one merge of all files
 *                        |                        |
 *                        +------> reducer <-------+ (nothing remained in memory)
 * </pre>
 *
 * <p>Everything in memory is as Hadoop does it: when outputs in memory are merged to a file, with
 * the combiner, and how much may remain there for the reducer ({@code
 * mapreduce.reduce.input.buffer.percent}).
 *
 * <p>Files are merged by the native library; by the same merge in Java where it can't load, is
 * switched off, or this is not its first attempt; and by Hadoop's merge in one pass where keys or
 * files are such that ours can't read them, or there are more files than its memory allows.
 *
 * @param <K> the map output's keys
 * @param <V> the map output's values
 */
public class ActiveMergeManager<K, V> extends MergeManagerImpl<K, V> {
  private static final Logger LOG = LoggerFactory.getLogger(ActiveMergeManager.class);

  /**
   * What Hadoop's merge holds of a file, and a generous key: its buffers ({@code
   * io.file.buffer.size}), and those of a codec or cipher.
   */
  private static final int STOCK_BYTES_PER_FILE = 64 << 10;

  private static final int STOCK_BYTES_PER_CODED_FILE = 512 << 10;

  private final ShuffleConsumerPlugin.Context<K, V> context;
  private final JobConf job;
  private final LocalFileSystem localFs;
  private final FileSystem rawFs;
  private final Path scratch;

  // What close() finds. No initial values: super's constructor makes a MemoryMerger.
  private List<InMemoryMapOutput<K, V>> inMemory;
  private List<CompressAwarePath> onDisk;

  private Closeable merged = () -> {};

  /** A manager for the reduce task of {@code context}. */
  public ActiveMergeManager(
      ShuffleConsumerPlugin.Context<K, V> context, ExceptionReporter exceptionReporter) {
    super(
        context.getReduceId(),
        context.getJobConf(),
        context.getLocalFS(),
        context.getLocalDirAllocator(),
        context.getReporter(),
        context.getCodec(),
        context.getCombinerClass(),
        context.getCombineCollector(),
        context.getSpilledRecordsCounter(),
        context.getReduceCombineInputCounter(),
        context.getMergedMapOutputsCounter(),
        exceptionReporter,
        context.getMergePhase(),
        context.getMapOutputFile());
    this.context = context;
    this.job = context.getJobConf();
    this.localFs = (LocalFileSystem) context.getLocalFS();
    this.rawFs = localFs.getRaw();
    this.scratch = new Path(context.getReduceId().toString());
  }

  /**
   * Hadoop's merger of outputs in memory, and at its end the place to take all that was fetched.
   */
  @Override
  protected MergeThread<InMemoryMapOutput<K, V>, K, V> createInMemoryMerger() {
    return new MemoryMerger(super.createInMemoryMerger());
  }

  private final class MemoryMerger extends MergeThread<InMemoryMapOutput<K, V>, K, V> {
    private final MergeThread<InMemoryMapOutput<K, V>, K, V> stock;

    MemoryMerger(MergeThread<InMemoryMapOutput<K, V>, K, V> stock) {
      super(ActiveMergeManager.this, stock.getMergeFactor(), getExceptionReporter());
      this.stock = stock;
      setName(stock.getName());
      setDaemon(true);
    }

    @Override
    public void merge(List<InMemoryMapOutput<K, V>> inputs) throws IOException {
      stock.merge(inputs);
    }

    /** The last merge in memory has ended: super.close() shall find nothing that it would merge. */
    @Override
    public synchronized void close() throws InterruptedException {
      super.close();
      takeFetched();
    }
  }

  private synchronized void takeFetched() {
    inMemory = new ArrayList<>(inMemoryMergedMapOutputs);
    inMemoryMergedMapOutputs.clear();
    inMemory.addAll(inMemoryMapOutputs);
    inMemoryMapOutputs.clear();
    onDisk = new ArrayList<>(onDiskMapOutputs);
    onDiskMapOutputs.clear();
  }

  /** Notes a file that was fetched, or merged from memory. */
  @Override
  public synchronized void closeOnDiskFile(CompressAwarePath file) {
    onDiskMapOutputs.add(file);
  }

  /** Called when everything was fetched: the records in order, merged as they are read. */
  @Override
  public RawKeyValueIterator close() throws Throwable {
    super.close().close();
    moveToDisk(outputsBeyond(getMaxInMemReduceLimit()));
    List<Merger.Segment<K, V>> remaining = segmentsOf(inMemory);
    // From here on the merge alone holds them, and drops each one at its end.
    inMemory = List.of();
    if (onDisk.isEmpty()) {
      LOG.info("Merging {} outputs in memory, there are no files", remaining.size());
      return mergeInMemory(remaining);
    }
    RawKeyValueIterator fromDisk = mergeFiles();
    if (remaining.isEmpty()) {
      return fromDisk;
    }
    long rawBytes = onDisk.stream().mapToLong(CompressAwarePath::getRawDataLength).sum();
    IFile.Reader<K, V> reader = new RawKVIteratorReader(fromDisk, rawBytes);
    remaining.add(new Merger.Segment<>(reader, true, rawBytes));
    return mergeInMemory(remaining);
  }

  /**
   * Gives up what was not read of our own merge; Hadoop's leaves that to the end of the process.
   */
  void release() {
    try {
      merged.close();
    } catch (IOException e) {
      LOG.warn("What was fetched could not be removed: {}", e.toString());
    }
  }

  /** Takes the outputs that exceed {@code bytes} from those in memory, the first ones first. */
  private List<InMemoryMapOutput<K, V>> outputsBeyond(long bytes) {
    long held = inMemory.stream().mapToLong(output -> output.getMemory().length).sum();
    int count = 0;
    while (held > bytes) {
      held -= inMemory.get(count).getMemory().length;
      count++;
    }
    List<InMemoryMapOutput<K, V>> leading = inMemory.subList(0, count);
    List<InMemoryMapOutput<K, V>> taken = new ArrayList<>(leading);
    leading.clear();
    return taken;
  }

  /** Merges outputs to one file more, without the combiner, as Hadoop does at the end. */
  private void moveToDisk(List<InMemoryMapOutput<K, V>> outputs) throws IOException {
    if (outputs.isEmpty()) {
      return;
    }
    TaskID first = outputs.get(0).getMapId().getTaskID();
    long bytes = outputs.stream().mapToLong(output -> output.getMemory().length).sum();
    Path file = mapOutputFile.getInputFileForWrite(first, bytes).suffix(Task.MERGED_OUTPUT_PREFIX);
    FSDataOutputStream out =
        IntermediateEncryptedStream.wrapIfNecessary(job, rawFs.create(file), file);
    IFile.Writer<K, V> writer =
        new IFile.Writer<>(job, out, keyClass(), valueClass(), context.getCodec(), null, true);
    try (out) {
      List<Merger.Segment<K, V>> segments = segmentsOf(outputs);
      RawKeyValueIterator records =
          Merger.merge(
              job,
              rawFs,
              keyClass(),
              valueClass(),
              segments,
              segments.size(),
              scratch,
              comparator(),
              context.getReporter(),
              context.getSpilledRecordsCounter(),
              null,
              context.getMergePhase());
      Merger.writeFile(records, writer, context.getReporter(), job);
      writer.close();
    } catch (IOException e) {
      rawFs.delete(file, false);
      throw e;
    }
    onDisk.add(new CompressAwarePath(file, writer.getRawLength(), writer.getCompressedLength()));
    LOG.info("Moved {} outputs, {} bytes, from memory to {}", outputs.size(), bytes, file);
  }

  private List<Merger.Segment<K, V>> segmentsOf(List<InMemoryMapOutput<K, V>> outputs)
      throws IOException {
    List<Merger.Segment<K, V>> segments = new ArrayList<>(outputs.size() + 1);
    for (InMemoryMapOutput<K, V> output : outputs) {
      byte[] bytes = output.getMemory();
      segments.add(
          new Merger.Segment<>(
              new InMemoryReader<>(this, output.getMapId(), bytes, 0, bytes.length, job),
              true,
              output.isPrimaryMapOutput() ? context.getMergedMapOutputsCounter() : null));
    }
    return segments;
  }

  private RawKeyValueIterator mergeInMemory(List<Merger.Segment<K, V>> segments)
      throws IOException {
    return Merger.merge(
        job,
        rawFs,
        keyClass(),
        valueClass(),
        segments,
        segments.size(),
        scratch,
        comparator(),
        context.getReporter(),
        context.getSpilledRecordsCounter(),
        null,
        null);
  }

  private RawKeyValueIterator mergeFiles() throws IOException {
    Optional<KeyOrder> order = order();
    long memory = job.getLong(Keys.REDUCE_MEMORY, Keys.DEFAULT_REDUCE_MEMORY);
    Optional<String> whyStock = whyStock(order, FileMerge.mostFiles(memory));
    if (whyStock.isPresent()) {
      return mergeAsHadoop(memory, whyStock.get());
    }
    List<Segment> files = new ArrayList<>(onDisk.size());
    for (CompressAwarePath file : onDisk) {
      files.add(segmentOf(file));
    }
    int memoryBytes = (int) Math.min(memory, Integer.MAX_VALUE);
    boolean keep = job.getKeepFailedTaskFiles();
    Optional<String> whyJava = whyJava();
    FileMerge merge =
        whyJava.isEmpty()
            ? FileMerge.natively(order.get(), files, memoryBytes, keep)
            : FileMerge.inJava(order.get(), files, memoryBytes, keep);
    count(
        whyJava.isEmpty() ? ReduceCounter.REDUCE_MERGE_NATIVE : ReduceCounter.REDUCE_MERGE_JAVA, 0);
    LOG.info(
        "Merging {} files while the reducer reads, {}",
        files.size(),
        whyJava.map(why -> "in Java: " + why).orElse("natively"));
    onDisk.stream()
        .filter(file -> !file.getName().endsWith(Task.MERGED_OUTPUT_PREFIX))
        .forEach(file -> context.getMergedMapOutputsCounter().increment(1));
    MergedRecords records =
        new MergedRecords(
            merge, SegmentMerge.rawLength(files), context.getSpilledRecordsCounter()::increment);
    merged = records::close;
    return records;
  }

  /** How our own merge would order keys; empty if it can't. */
  private Optional<KeyOrder> order() {
    try {
      return KeyOrder.of(job);
    } catch (IllegalArgumentException e) {
      LOG.warn("The order of keys that was set is not one: {}", e.getMessage());
      return Optional.empty();
    }
  }

  private Optional<String> whyStock(Optional<KeyOrder> order, int mostFiles) {
    if (context.getCodec() != null) {
      return Optional.of("map outputs are compressed");
    }
    if (CryptoUtils.isEncryptedSpillEnabled(job)) {
      return Optional.of("map outputs are encrypted");
    }
    if (order.isEmpty()) {
      return Optional.of(
          "how " + job.getOutputKeyComparator().getClass().getName() + " compares is not known");
    }
    if (onDisk.size() > mostFiles) {
      return Optional.of(
          Keys.REDUCE_MEMORY + " and the limit of open files allow " + mostFiles + " files");
    }
    return Optional.empty();
  }

  private Optional<String> whyJava() {
    if (!job.getBoolean(Keys.REDUCE_NATIVE, Keys.DEFAULT_REDUCE_NATIVE)) {
      return Optional.of(Keys.REDUCE_NATIVE + " is false");
    }
    if (getReduceId().getId() > 0) {
      return Optional.of("this is not the first attempt of the task");
    }
    return NativeLibrary.whyNot();
  }

  private Segment segmentOf(CompressAwarePath fetched) throws IOException {
    File file = localFs.pathToFile(fetched);
    if (file.length() != fetched.getCompressedSize()) {
      throw new IOException(
          file
              + " has "
              + file.length()
              + " bytes, not the "
              + fetched.getCompressedSize()
              + " that were written to it");
    }
    return new Segment(file.toPath(), 0, fetched.getRawDataLength(), fetched.getCompressedSize());
  }

  /** Hadoop's merge, in one pass if memory allows it. */
  private RawKeyValueIterator mergeAsHadoop(long memory, String why) throws IOException {
    boolean coded = context.getCodec() != null || CryptoUtils.isEncryptedSpillEnabled(job);
    int bytesPerFile = coded ? STOCK_BYTES_PER_CODED_FILE : STOCK_BYTES_PER_FILE;
    int factor = Math.max(stockFactor(), FileMerge.mostFiles(memory, bytesPerFile));
    int passes = StockPasses.after(onDisk.size(), factor);
    count(ReduceCounter.REDUCE_MERGE_STOCK, passes);
    LOG.info(
        "Merging {} files by Hadoop's merge{}: {}",
        onDisk.size(),
        passes == 0 ? " while the reducer reads" : ", " + passes + " times to a file before",
        why);
    List<Merger.Segment<K, V>> segments = new ArrayList<>(onDisk.size());
    for (CompressAwarePath file : onDisk) {
      boolean fetched = !file.getName().endsWith(Task.MERGED_OUTPUT_PREFIX);
      segments.add(
          new Merger.Segment<>(
              job,
              rawFs,
              file,
              context.getCodec(),
              job.getKeepFailedTaskFiles(),
              fetched ? context.getMergedMapOutputsCounter() : null,
              file.getRawDataLength()));
    }
    return Merger.merge(
        job,
        rawFs,
        keyClass(),
        valueClass(),
        context.getCodec(),
        segments,
        factor,
        0,
        scratch,
        comparator(),
        context.getReporter(),
        true,
        context.getSpilledRecordsCounter(),
        null,
        passes == 0 ? null : context.getMergePhase());
  }

  private void count(ReduceCounter merge, int passes) {
    merge.add(context.getReporter(), 1);
    int saved = StockPasses.whileFetchingAndAfter(onDisk.size(), stockFactor()) - passes;
    ReduceCounter.ON_DISK_PASSES_SAVED.add(context.getReporter(), saved);
  }

  private int stockFactor() {
    return job.getInt(MRJobConfig.IO_SORT_FACTOR, MRJobConfig.DEFAULT_IO_SORT_FACTOR);
  }

  @SuppressWarnings("unchecked") // What a job is configured with, it maps to.
  private Class<K> keyClass() {
    return (Class<K>) job.getMapOutputKeyClass();
  }

  @SuppressWarnings("unchecked")
  private Class<V> valueClass() {
    return (Class<V>) job.getMapOutputValueClass();
  }

  @SuppressWarnings("unchecked")
  private RawComparator<K> comparator() {
    return (RawComparator<K>) job.getOutputKeyComparator();
  }
}
