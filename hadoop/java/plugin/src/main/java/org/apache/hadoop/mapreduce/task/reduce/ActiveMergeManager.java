package org.apache.hadoop.mapreduce.task.reduce;

import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.nativemerge.NativeLibrary;
import io.merganser.hadoop.order.JobKeyOrder;
import io.merganser.hadoop.order.KeyOrder;
import io.merganser.hadoop.reduce.FileMerge;
import io.merganser.hadoop.reduce.MergedRecords;
import io.merganser.hadoop.reduce.OrderedRecords;
import io.merganser.hadoop.reduce.ReduceCounter;
import io.merganser.hadoop.reduce.StockPasses;
import io.merganser.hadoop.segment.OrderSample;
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
 * Holds the map outputs that a reduce task has fetched, and merges them once.
 *
 * <p>Hadoop's own manager merges files into a file whenever there are many, and again before the
 * reducer starts, until at most {@code mapreduce.task.io.sort.factor} are left. This manager only
 * collects files. Their merge writes nothing, because it runs while the reducer reads.
 *
 * <pre>
 *   fetched  in memory --+-- too many --------> a file
 *                        |                        |
 *                        | those that may stay    |     files fetched
 *                        v                        v       v
 *                      Hadoop's merge <---- one merge of all files
 *                        |                        |
 *                        +------> reducer <-------+ (if none stayed in memory)
 * </pre>
 *
 * <p>Hadoop's rules hold in memory: when outputs are merged to a file, with the combiner, and how
 * much may stay there for the reducer ({@code mapreduce.reduce.input.buffer.percent}).
 *
 * <p>The native library merges files. If it can't load or is switched off, or if this isn't the
 * first attempt of the task, the same merge runs in Java. If our merge can't read the keys or the
 * files, or if there are more files than its memory allows, Hadoop's merge runs, in one pass.
 *
 * <p>An order that the job registers may be wrong. So Hadoop's merge also runs if a sample of the
 * files shows that, and in all attempts of the task but the first. Whatever merges, the reducer
 * gets keys in the order of the job's comparator, or the task fails ({@link OrderedRecords}).
 *
 * @param <K> the map output's keys
 * @param <V> the map output's values
 */
public class ActiveMergeManager<K, V> extends MergeManagerImpl<K, V> {
  private static final Logger LOG = LoggerFactory.getLogger(ActiveMergeManager.class);

  /**
   * The memory of Hadoop's merge for a file: its buffers ({@code io.file.buffer.size}), those of a
   * codec or cipher, and room for a long key.
   */
  private static final int STOCK_BYTES_PER_FILE = 64 << 10;

  private static final int STOCK_BYTES_PER_CODED_FILE = 512 << 10;

  private final ShuffleConsumerPlugin.Context<K, V> context;
  private final JobConf job;
  private final LocalFileSystem localFs;
  private final FileSystem rawFs;
  private final Path scratch;

  // Used by close(). Without initial values, because super's constructor makes a MemoryMerger.
  private List<InMemoryMapOutput<K, V>> inMemory;
  private List<CompressAwarePath> onDisk;

  private Closeable merged = () -> {};

  /** Makes the manager of the reduce task of {@code context}. */
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
   * Hadoop's merger of outputs in memory. When it closes, this manager takes all fetched outputs.
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

    /** Takes all outputs after the last merge in memory, so that super.close() merges nothing. */
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

  /** Called when everything was fetched. Returns the records in order, merged as they are read. */
  @Override
  public RawKeyValueIterator close() throws Throwable {
    super.close().close();
    Optional<KeyOrder> order = order();
    RawKeyValueIterator records = merge(order);
    return order.isPresent() && JobKeyOrder.isRegistered(job)
        ? new OrderedRecords(records, comparator(), correctionOf(order.get()))
        : records;
  }

  private String correctionOf(KeyOrder order) {
    return "correct or remove the setting " + JobKeyOrder.setting(job) + ", which is " + order;
  }

  private RawKeyValueIterator merge(Optional<KeyOrder> order) throws IOException {
    moveToDisk(outputsBeyond(getMaxInMemReduceLimit()));
    List<Merger.Segment<K, V>> remaining = segmentsOf(inMemory);
    // From here on only the merge refers to them, and drops each one at its end.
    inMemory = List.of();
    if (onDisk.isEmpty()) {
      LOG.info("Merging {} outputs in memory, no files", remaining.size());
      return mergeInMemory(remaining);
    }
    RawKeyValueIterator fromDisk = mergeFiles(order);
    if (remaining.isEmpty()) {
      return fromDisk;
    }
    long rawBytes = onDisk.stream().mapToLong(CompressAwarePath::getRawDataLength).sum();
    IFile.Reader<K, V> reader = new RawKVIteratorReader(fromDisk, rawBytes);
    remaining.add(new Merger.Segment<>(reader, true, rawBytes));
    return mergeInMemory(remaining);
  }

  /**
   * Closes our merge and drops the records that were not read. Hadoop's merge leaves that to the
   * end of the process.
   */
  void release() {
    try {
      merged.close();
    } catch (IOException e) {
      LOG.warn("Fetched files could not be removed: {}", e.toString());
    }
  }

  /** Takes the first outputs out of memory, until at most {@code bytes} bytes are left there. */
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

  /** Merges outputs to another file, without the combiner, as Hadoop does at the end. */
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

  private RawKeyValueIterator mergeFiles(Optional<KeyOrder> order) throws IOException {
    long memory = job.getLong(Keys.REDUCE_MEMORY, Keys.DEFAULT_REDUCE_MEMORY);
    Optional<String> whyStock = whyStock(order, FileMerge.mostFiles(memory));
    if (whyStock.isPresent()) {
      return mergeAsHadoop(memory, whyStock.get());
    }
    List<Segment> files = segmentsOnDisk();
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

  /** The order of keys for our own merge; empty if it isn't known. */
  private Optional<KeyOrder> order() {
    try {
      return JobKeyOrder.of(job);
    } catch (IllegalArgumentException e) {
      LOG.warn("The registered order of keys is malformed: {}", e.getMessage());
      ReduceCounter.REDUCE_STOCK_WRONG_ORDER.add(context.getReporter(), 1);
      return Optional.empty();
    }
  }

  private Optional<String> whyStock(Optional<KeyOrder> order, int mostFiles) throws IOException {
    if (context.getCodec() != null) {
      return Optional.of("map outputs are compressed");
    }
    if (CryptoUtils.isEncryptedSpillEnabled(job)) {
      return Optional.of("map outputs are encrypted");
    }
    if (order.isEmpty()) {
      return Optional.of(
          "the order of " + job.getOutputKeyComparator().getClass().getName() + " is not known");
    }
    if (onDisk.size() > mostFiles) {
      return Optional.of(
          Keys.REDUCE_MEMORY + " and the limit of open files allow " + mostFiles + " files");
    }
    return JobKeyOrder.isRegistered(job) ? whyNotRegistered(order.get()) : Optional.empty();
  }

  /** The reason not to merge by a registered order. */
  private Optional<String> whyNotRegistered(KeyOrder order) throws IOException {
    if (getReduceId().getId() > 0) {
      return Optional.of(
          "the order of keys is registered, and this is not the first attempt of the task");
    }
    Optional<String> wrong = OrderSample.difference(job, order, segmentsOnDisk());
    if (wrong.isPresent()) {
      ReduceCounter.REDUCE_STOCK_WRONG_ORDER.add(context.getReporter(), 1);
    }
    return wrong;
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

  private List<Segment> segmentsOnDisk() throws IOException {
    List<Segment> files = new ArrayList<>(onDisk.size());
    for (CompressAwarePath file : onDisk) {
      files.add(segmentOf(file));
    }
    return files;
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

  @SuppressWarnings("unchecked") // The configuration names the job's own classes.
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
