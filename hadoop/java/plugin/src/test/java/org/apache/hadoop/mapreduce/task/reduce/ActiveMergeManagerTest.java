package org.apache.hadoop.mapreduce.task.reduce;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.nativemerge.NativeLibrary;
import io.merganser.hadoop.order.UnsignedLongs;
import io.merganser.hadoop.reduce.MergedRecords;
import io.merganser.hadoop.reduce.StockPasses;
import io.merganser.hadoop.segment.SpillFile;
import io.merganser.hadoop.segment.SpillFile.KeyValue;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalDirAllocator;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.DataInputBuffer;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapred.Counters;
import org.apache.hadoop.mapred.InputSplit;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.MROutputFiles;
import org.apache.hadoop.mapred.RawKeyValueIterator;
import org.apache.hadoop.mapred.Reporter;
import org.apache.hadoop.mapred.ShuffleConsumerPlugin;
import org.apache.hadoop.mapreduce.MRConfig;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.util.Progress;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Gives the same map outputs to our manager and to Hadoop's own, as a fetcher does. */
class ActiveMergeManagerTest {
  /** A memory in which even an empty output is too large, and one in which every output fits. */
  private static final long ALL_TO_FILES = 8;

  private static final long ALL_IN_MEMORY = 64 << 20;

  @TempDir private Path folder;
  private JobConf job;
  private Counters counters;
  private int attempt;

  @BeforeEach
  void configure() {
    job = new JobConf(false);
    job.set(MRConfig.LOCAL_DIR, folder.toString());
    job.setMapOutputKeyClass(Text.class);
    job.setMapOutputValueClass(BytesWritable.class);
    job.set("io.serializations", "org.apache.hadoop.io.serializer.WritableSerialization");
    job.setInt(MRJobConfig.IO_SORT_FACTOR, 3);
    job.setLong(MRJobConfig.REDUCE_MEMORY_TOTAL_BYTES, ALL_TO_FILES);
  }

  /** Counters, as the reporter of a task has them. */
  private final class Tally implements Reporter {
    @Override
    public void setStatus(String status) {}

    @Override
    public Counters.Counter getCounter(Enum<?> name) {
      return counters.findCounter(name);
    }

    @Override
    public Counters.Counter getCounter(String group, String name) {
      return counters.findCounter(group, name);
    }

    @Override
    public void incrCounter(Enum<?> key, long amount) {
      counters.incrCounter(key, amount);
    }

    @Override
    public void incrCounter(String group, String counter, long amount) {
      counters.incrCounter(group, counter, amount);
    }

    @Override
    public InputSplit getInputSplit() {
      throw new UnsupportedOperationException("a reduce task has none");
    }

    @Override
    public float getProgress() {
      return 0;
    }

    @Override
    public void progress() {}
  }

  private TaskAttemptID reduceId() {
    return new TaskAttemptID("1", 1, TaskType.REDUCE, 0, attempt);
  }

  private ShuffleConsumerPlugin.Context<Text, BytesWritable> context() throws IOException {
    counters = new Counters();
    return new ShuffleConsumerPlugin.Context<>(
        reduceId(),
        job,
        FileSystem.getLocal(job),
        null,
        new LocalDirAllocator(MRConfig.LOCAL_DIR),
        new Tally(),
        null,
        null,
        null,
        counters.findCounter("task", "spilled"),
        counters.findCounter("task", "combined"),
        counters.findCounter("task", "shuffled"),
        counters.findCounter("task", "bytes"),
        counters.findCounter("task", "failed"),
        counters.findCounter("task", "merged"),
        null,
        new Progress(),
        new Progress(),
        null,
        new MROutputFiles(),
        null);
  }

  private ActiveMergeManager<Text, BytesWritable> ours() throws IOException {
    return new ActiveMergeManager<>(context(), ActiveMergeManagerTest::fail);
  }

  private MergeManagerImpl<Text, BytesWritable> stock() throws IOException {
    ShuffleConsumerPlugin.Context<Text, BytesWritable> context = context();
    return new MergeManagerImpl<>(
        context.getReduceId(),
        job,
        context.getLocalFS(),
        context.getLocalDirAllocator(),
        context.getReporter(),
        null,
        null,
        null,
        context.getSpilledRecordsCounter(),
        context.getReduceCombineInputCounter(),
        context.getMergedMapOutputsCounter(),
        ActiveMergeManagerTest::fail,
        context.getMergePhase(),
        context.getMapOutputFile());
  }

  private static void fail(Throwable thrown) {
    throw new AssertionError("a merge failed", thrown);
  }

  private static List<List<KeyValue>> outputs(int count, int mostRecords, long seed) {
    Random random = new Random(seed);
    List<List<KeyValue>> outputs = new ArrayList<>();
    for (int map = 0; map < count; map++) {
      List<Integer> keys = new ArrayList<>();
      for (int records = random.nextInt(mostRecords + 1); records > 0; records--) {
        keys.add(random.nextInt(200));
      }
      keys.sort(null);
      List<KeyValue> output = new ArrayList<>();
      for (int key : keys) {
        byte[] value = new byte[20 + random.nextInt(60)];
        random.nextBytes(value);
        output.add(KeyValue.of(new Text(String.format("key %03d", key)), new BytesWritable(value)));
      }
      outputs.add(output);
    }
    return outputs;
  }

  /** Fetches outputs as {@link Fetcher} does, one after the other. */
  private void fetch(MergeManager<Text, BytesWritable> manager, List<List<KeyValue>> outputs)
      throws IOException, InterruptedException {
    ShuffleClientMetrics metrics = ShuffleClientMetrics.create(reduceId(), job);
    for (int map = 0; map < outputs.size(); map++) {
      byte[] part = SpillFile.bytes(folder.resolve("served"), outputs.get(map));
      TaskAttemptID mapId = new TaskAttemptID("1", 1, TaskType.MAP, map, 0);
      int raw = part.length - 4;
      MapOutput<Text, BytesWritable> output;
      do {
        manager.waitForResource();
        output = manager.reserve(mapId, raw, 0);
      } while (output == null);
      output.shuffle(
          new MapHost("host", "http://host"),
          new ByteArrayInputStream(part),
          part.length,
          raw,
          metrics,
          Reporter.NULL);
      output.commit();
    }
    Files.deleteIfExists(folder.resolve("served"));
  }

  private static byte[] current(DataInputBuffer buffer) {
    return Arrays.copyOfRange(buffer.getData(), buffer.getPosition(), buffer.getLength());
  }

  /** Reads to the end, and once more after it. Keys must come in order. */
  private static List<KeyValue> drain(RawKeyValueIterator records) throws IOException {
    List<KeyValue> drained = new ArrayList<>();
    while (records.next()) {
      KeyValue record = new KeyValue(current(records.getKey()), current(records.getValue()));
      if (!drained.isEmpty()) {
        byte[] before = drained.get(drained.size() - 1).key();
        assertTrue(Arrays.compareUnsigned(before, record.key()) <= 0);
      }
      drained.add(record);
    }
    assertFalse(records.next());
    assertFalse(records.next());
    records.close();
    return drained;
  }

  /**
   * Records as text. Records with equal keys are sorted, since merges may order them differently.
   */
  private static List<String> normalized(List<KeyValue> records) {
    return records.stream()
        .map(record -> Arrays.toString(record.key()) + "=" + Arrays.toString(record.value()))
        .sorted()
        .toList();
  }

  private List<String> filesLeft() throws IOException {
    try (Stream<Path> all = Files.walk(folder)) {
      return all.filter(Files::isRegularFile).map(Path::toString).toList();
    }
  }

  private long counted(String name) {
    return counters.findCounter("Merganser", name).getCounter();
  }

  private static String ownMerge() {
    return NativeLibrary.whyNot().isEmpty() ? "REDUCE_MERGE_NATIVE" : "REDUCE_MERGE_JAVA";
  }

  @ParameterizedTest
  @CsvSource({
    // Maps, most records, memory, part that may stay in memory, whether merges run in memory.
    "0, 100, 4096, 0, false",
    "1, 100, 4096, 0, false",
    "1, 0, 4096, 0, false",
    "40, 100, 4096, 0, false",
    "40, 100, 4096, 0.7, false",
    "40, 0, 4096, 0, false",
    "40, 100, 30000, 0, false",
    "40, 100, 30000, 0.5, false",
    "40, 100, 30000, 1, true",
    "40, 100, 60000, 0.2, true",
    "40, 100, 67108864, 0, false",
    "40, 100, 67108864, 0.0005, false",
    "40, 100, 67108864, 0.7, false",
    "12, 2000, 200000, 0.3, false",
    "200, 40, 4096, 0, false",
  })
  void givesWhatHadoopsManagerGives(
      int maps, int mostRecords, long memory, float percent, boolean inMemory) throws Throwable {
    job.setLong(MRJobConfig.REDUCE_MEMORY_TOTAL_BYTES, memory);
    job.setFloat(MRJobConfig.REDUCE_INPUT_BUFFER_PERCENT, percent);
    job.setBoolean(MRJobConfig.REDUCE_MEMTOMEM_ENABLED, inMemory);
    List<List<KeyValue>> outputs = outputs(maps, mostRecords, maps * 31L + mostRecords);

    MergeManagerImpl<Text, BytesWritable> stock = stock();
    fetch(stock, outputs);
    List<String> expected = normalized(drain(stock.close()));
    long merged = counters.findCounter("task", "merged").getCounter();
    long spilled = counters.findCounter("task", "spilled").getCounter();

    ActiveMergeManager<Text, BytesWritable> ours = ours();
    fetch(ours, outputs);
    assertEquals(expected, normalized(drain(ours.close())));
    assertEquals(merged, counters.findCounter("task", "merged").getCounter());
    assertTrue(counters.findCounter("task", "spilled").getCounter() <= spilled);
    assertEquals(List.of(), filesLeft());
  }

  @Test
  void mergesFilesOnceAndCountsIt() throws Throwable {
    List<List<KeyValue>> outputs = outputs(40, 100, 1);
    long records = outputs.stream().mapToLong(List::size).sum();
    ActiveMergeManager<Text, BytesWritable> manager = ours();
    fetch(manager, outputs);
    int files = filesLeft().size();
    RawKeyValueIterator merged = manager.close();
    assertInstanceOf(MergedRecords.class, merged);
    assertEquals(files, filesLeft().size(), "nothing was written");
    assertEquals(records, drain(merged).size());
    assertEquals(1, merged.getProgress().get());
    assertEquals(1, counted(ownMerge()));
    assertEquals(StockPasses.whileFetchingAndAfter(files, 3), counted("ON_DISK_PASSES_SAVED"));
    assertEquals(records, counters.findCounter("task", "spilled").getCounter());
  }

  /** Hadoop writes outputs that fit in memory to one file, to leave the memory to the reducer. */
  @Test
  void outputsThatMayNotStayInMemoryGoToOneFile() throws Throwable {
    job.setLong(MRJobConfig.REDUCE_MEMORY_TOTAL_BYTES, ALL_IN_MEMORY);
    ActiveMergeManager<Text, BytesWritable> manager = ours();
    fetch(manager, outputs(10, 100, 2));
    assertEquals(0, filesLeft().size());
    RawKeyValueIterator merged = manager.close();
    assertEquals(1, filesLeft().size());
    drain(merged);
    assertEquals(10, counters.findCounter("task", "merged").getCounter());
    assertEquals(0, filesLeft().size());
  }

  @Test
  void outputsThatMayStayInMemoryAreNotWritten() throws Throwable {
    job.setLong(MRJobConfig.REDUCE_MEMORY_TOTAL_BYTES, ALL_IN_MEMORY);
    job.setFloat(MRJobConfig.REDUCE_INPUT_BUFFER_PERCENT, 0.7f);
    ActiveMergeManager<Text, BytesWritable> manager = ours();
    fetch(manager, outputs(10, 100, 2));
    RawKeyValueIterator merged = manager.close();
    assertEquals(0, filesLeft().size());
    drain(merged);
    assertEquals(0, counted(ownMerge()), "there were no files to merge");
  }

  @Test
  void equalKeysComeInTheOrderOfTheirFiles() throws Throwable {
    List<List<KeyValue>> outputs = new ArrayList<>();
    for (int map = 0; map < 9; map++) {
      List<KeyValue> output = new ArrayList<>();
      for (int record = 0; record < 100; record++) {
        byte[] value = new byte[20];
        value[0] = (byte) map;
        value[1] = (byte) record;
        output.add(KeyValue.of(new Text("same"), new BytesWritable(value)));
      }
      outputs.add(output);
    }
    List<String> before = null;
    for (int again = 0; again < 2; again++) {
      ActiveMergeManager<Text, BytesWritable> manager = ours();
      fetch(manager, outputs);
      List<String> values =
          drain(manager.close()).stream().map(r -> Arrays.toString(r.value())).toList();
      for (int record = 0; record < values.size(); record++) {
        String start = "[0, 0, 0, 20, " + record / 100 + ", " + record % 100 + ", ";
        assertTrue(values.get(record).startsWith(start), values.get(record));
      }
      assertTrue(before == null || before.equals(values));
      before = values;
    }
  }

  @Test
  void aFileThatWasDamagedFailsTheTaskAndSaysWhich() throws Throwable {
    ActiveMergeManager<Text, BytesWritable> manager = ours();
    fetch(manager, outputs(10, 100, 3));
    Path damaged = Path.of(filesLeft().get(4));
    byte[] bytes = Files.readAllBytes(damaged);
    bytes[bytes.length / 2] ^= 16;
    Files.write(damaged, bytes);
    IOException thrown = assertThrows(IOException.class, () -> drain(manager.close()));
    assertTrue(thrown.getMessage().contains(damaged.toString()), thrown.getMessage());
    manager.release();
    assertEquals(List.of(), filesLeft());
  }

  @Test
  void aFileOfAnotherLengthFailsTheTaskAndSaysWhich() throws Throwable {
    ActiveMergeManager<Text, BytesWritable> manager = ours();
    fetch(manager, outputs(10, 100, 3));
    Path cut = Path.of(filesLeft().get(4));
    byte[] bytes = Files.readAllBytes(cut);
    Files.write(cut, Arrays.copyOf(bytes, bytes.length - 1));
    IOException thrown = assertThrows(IOException.class, manager::close);
    String expected = cut + " has " + (bytes.length - 1) + " bytes, not the " + bytes.length;
    assertTrue(thrown.getMessage().startsWith(expected), thrown.getMessage());
  }

  @Test
  void aReducerThatStopsEarlyLeavesNothing() throws Throwable {
    ActiveMergeManager<Text, BytesWritable> manager = ours();
    fetch(manager, outputs(10, 100, 4));
    assertTrue(manager.close().next());
    manager.release();
    manager.release();
    assertEquals(List.of(), filesLeft());
  }

  @Test
  void keepsTheFilesWhereTheJobDoes() throws Throwable {
    job.setKeepFailedTaskFiles(true);
    ActiveMergeManager<Text, BytesWritable> manager = ours();
    fetch(manager, outputs(10, 100, 4));
    List<String> files = filesLeft();
    drain(manager.close());
    assertEquals(files, filesLeft());
  }

  @Test
  void mergesInJavaIfConfigured() throws Throwable {
    job.setBoolean(Keys.REDUCE_NATIVE, false);
    assertMergesBy("REDUCE_MERGE_JAVA");
  }

  @Test
  void mergesInJavaAfterAFailedAttempt() throws Throwable {
    attempt = 1;
    assertMergesBy("REDUCE_MERGE_JAVA");
  }

  @Test
  void mergesAsHadoopDoesWhereKeysAreNotKnown() throws Throwable {
    job.setOutputKeyComparatorClass(OwnComparator.class);
    assertMergesBy("REDUCE_MERGE_STOCK");
    job.set(Keys.ORDER_PREFIX + OwnComparator.class.getName(), "words");
    assertMergesBy("REDUCE_MERGE_STOCK");
    job.set(Keys.ORDER_PREFIX + OwnComparator.class.getName(), "text");
    assertMergesBy(ownMerge());
  }

  /** A comparator without a registration. */
  public static final class OwnComparator extends Text.Comparator {}

  @Test
  void aWrongRegistrationIsFoundAndHadoopMerges() throws Throwable {
    List<List<KeyValue>> outputs = longs(9, 200, Long::compareUnsigned);
    registerForUnsigned("long");
    assertMergesBy("REDUCE_MERGE_STOCK", outputs);
    assertEquals(1, counted("REDUCE_STOCK_WRONG_ORDER"));
    registerForUnsigned("fixed:9");
    assertMergesBy("REDUCE_MERGE_STOCK", outputs);
    assertEquals(1, counted("REDUCE_STOCK_WRONG_ORDER"));
    registerForUnsigned("eight bytes");
    assertMergesBy("REDUCE_MERGE_STOCK", outputs);
    assertEquals(1, counted("REDUCE_STOCK_WRONG_ORDER"));
    registerForUnsigned("fixed:8");
    assertMergesBy(ownMerge(), outputs);
    assertEquals(0, counted("REDUCE_STOCK_WRONG_ORDER"));
  }

  /** The first keys of each file are small, so a sample of them compares alike in both orders. */
  @Test
  void aWrongRegistrationThatTheSampleMissesFailsTheFirstAttemptOnly() throws Throwable {
    List<List<KeyValue>> outputs = longs(3, 8000, Long::compareUnsigned);
    registerForUnsigned("long");
    ActiveMergeManager<Text, BytesWritable> manager = ours();
    fetch(manager, outputs);
    RawKeyValueIterator merged = manager.close();
    assertEquals(1, counted(ownMerge()));
    assertNamesTheRegistration(assertThrows(IOException.class, () -> drain(merged)));
    manager.release();
    attempt = 1;
    assertMergesBy("REDUCE_MERGE_STOCK", outputs);
  }

  /** A map that deferred its merge by the wrong order is served out of order. */
  @Test
  void outputsOutOfOrderFailTheTaskWhateverMerges() throws Throwable {
    List<List<KeyValue>> outputs = longs(9, 200, Long::compare);
    registerForUnsigned("long");
    job.setFloat(MRJobConfig.REDUCE_INPUT_BUFFER_PERCENT, 0.7f);
    for (long memory : new long[] {ALL_TO_FILES, ALL_IN_MEMORY}) {
      job.setLong(MRJobConfig.REDUCE_MEMORY_TOTAL_BYTES, memory);
      ActiveMergeManager<Text, BytesWritable> manager = ours();
      fetch(manager, outputs);
      assertNamesTheRegistration(
          assertThrows(IOException.class, () -> drain(manager.close()), "memory " + memory));
      assertEquals(0, counted(ownMerge()));
    }
  }

  private void registerForUnsigned(String order) {
    job.setMapOutputKeyClass(LongWritable.class);
    job.setOutputKeyComparatorClass(UnsignedLongs.class);
    job.set(Keys.ORDER_PREFIX + UnsignedLongs.class.getName(), order);
  }

  private static void assertNamesTheRegistration(IOException thrown) {
    assertEquals(
        "the merged keys are not in the order of "
            + UnsignedLongs.class.getName()
            + ": correct or remove the setting "
            + Keys.ORDER_PREFIX
            + UnsignedLongs.class.getName()
            + ", which is long",
        thrown.getMessage());
  }

  /** Outputs with about half of {@code keys} keys each, so that most keys are in several. */
  private static List<List<KeyValue>> longs(int count, int keys, Comparator<Long> order) {
    Random random = new Random(keys);
    List<Long> all = random.longs(keys).boxed().sorted(order).toList();
    List<List<KeyValue>> outputs = new ArrayList<>();
    for (int map = 0; map < count; map++) {
      BytesWritable value = new BytesWritable(new byte[] {(byte) map});
      List<KeyValue> output = new ArrayList<>();
      for (long key : all) {
        if (random.nextBoolean()) {
          output.add(KeyValue.of(new LongWritable(key), value));
        }
      }
      outputs.add(output);
    }
    return outputs;
  }

  private void assertMergesBy(String counter) throws Throwable {
    assertMergesBy(counter, outputs(30, 100, 5));
  }

  private void assertMergesBy(String counter, List<List<KeyValue>> outputs) throws Throwable {
    ActiveMergeManager<Text, BytesWritable> manager = ours();
    fetch(manager, outputs);
    int files = filesLeft().size();
    List<KeyValue> all = new ArrayList<>();
    outputs.forEach(all::addAll);
    assertEquals(normalized(all), normalized(drain(manager.close())));
    assertEquals(1, counted(counter));
    assertEquals(StockPasses.whileFetchingAndAfter(files, 3), counted("ON_DISK_PASSES_SAVED"));
    assertEquals(List.of(), filesLeft());
  }

  @Test
  void mergesInSeveralPassesOnlyWhereMemoryIsTooLittle() throws Throwable {
    job.setLong(Keys.REDUCE_MEMORY, 8 * (64 << 10));
    List<List<KeyValue>> outputs = outputs(40, 100, 6);
    ActiveMergeManager<Text, BytesWritable> manager = ours();
    fetch(manager, outputs);
    int files = filesLeft().size();
    RawKeyValueIterator merged = manager.close();
    List<KeyValue> all = new ArrayList<>();
    outputs.forEach(all::addAll);
    assertEquals(normalized(all), normalized(drain(merged)));
    assertEquals(1, counted("REDUCE_MERGE_STOCK"));
    assertEquals(
        StockPasses.whileFetchingAndAfter(files, 3) - StockPasses.after(files, 8),
        counted("ON_DISK_PASSES_SAVED"));
    assertEquals(List.of(), filesLeft());
  }
}
