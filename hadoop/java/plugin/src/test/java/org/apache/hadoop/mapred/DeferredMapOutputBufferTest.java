package org.apache.hadoop.mapred;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.capability.Capability;
import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.defer.DeferRules;
import io.merganser.hadoop.defer.Refusal;
import io.merganser.hadoop.manifest.Manifest;
import io.merganser.hadoop.order.UnsignedLongs;
import io.merganser.hadoop.segment.Segment;
import io.merganser.hadoop.segment.SegmentMerge;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.function.Consumer;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.DataInputBuffer;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.RawComparator;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.io.WritableComparator;
import org.apache.hadoop.mapred.MapSide.Output;
import org.apache.hadoop.mapred.lib.IdentityReducer;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class DeferredMapOutputBufferTest {
  private static final int PARTITIONS = 3;

  @TempDir Path dir;

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 7})
  void partitionsMergeToTheBytesOfHadoopsMerge(int seed) throws Exception {
    JobConf settings = MapSide.textSettings(PARTITIONS);
    List<Output> outputs = distinctRecords(20_000, new Random(seed));
    MapSide stock = map("stock", settings).runStock(outputs);
    MapSide deferred = map("deferred", settings).runDeferred(outputs);
    long bytes = Files.size(stock.fileOut());
    assertEquals(
        Map.of("MAPS_DEFERRED", 1L, "MAP_OUTPUT_BYTES_NOT_REWRITTEN", bytes), deferred.decisions());
    assertSameSegments(stock, deferred);
    for (TaskCounter counter :
        List.of(
            TaskCounter.MAP_OUTPUT_RECORDS,
            TaskCounter.MAP_OUTPUT_BYTES,
            TaskCounter.MAP_OUTPUT_MATERIALIZED_BYTES)) {
      assertEquals(stock.counter(counter), deferred.counter(counter), counter.name());
    }
    assertEquals(20_000, deferred.counter(TaskCounter.SPILLED_RECORDS), "each record once");
    assertEquals(1, deferred.task().getSortPhase().get());
  }

  @Test
  void equalKeysComeInTheOrderOfTheSpills() throws Exception {
    JobConf settings = MapSide.textSettings(2);
    settings.setInt(MRJobConfig.IO_SORT_FACTOR, 3);
    Random random = new Random(3);
    List<Output> outputs = new ArrayList<>();
    for (int i = 0; i < 20_000; i++) {
      outputs.add(
          new Output(new Text("key" + random.nextInt(40)), bytes(random, 150), random.nextInt(2)));
    }
    MapSide stock = map("stock", settings).runStock(outputs);
    MapSide deferred = map("deferred", settings).runDeferred(outputs);
    Manifest manifest = Manifest.read(deferred.fileOut());
    assertTrue(manifest.spills().size() > 3);
    for (int partition = 0; partition < 2; partition++) {
      // Hadoop's merge doesn't define the order of equal keys, so only groups can be compared.
      byte[] merged = merge(manifest.segments(partition));
      assertEquals(groups(records(segment(stock, partition))), groups(records(merged)));
      List<List<byte[]>> expected = new ArrayList<>();
      for (Segment segment : manifest.segments(partition)) {
        expected.addAll(records(merge(List.of(segment))));
      }
      RawComparator<?> comparator = settings.getOutputKeyComparator();
      expected.sort(
          (a, b) -> comparator.compare(a.get(0), 0, a.get(0).length, b.get(0), 0, b.get(0).length));
      List<List<byte[]>> found = records(merged);
      for (int i = 0; i < expected.size(); i++) {
        assertArrayEquals(expected.get(i).get(1), found.get(i).get(1));
      }
    }
  }

  @Test
  void recordsLargerThanTheBufferAreSpillsOfTheirOwn() throws Exception {
    JobConf settings = MapSide.textSettings(PARTITIONS);
    Random random = new Random(5);
    List<Output> outputs = distinctRecords(3_000, random);
    outputs.add(700, new Output(new Text("large"), bytes(random, 2 << 20), 1));
    outputs.add(new Output(new Text("last"), bytes(random, 3 << 20), 0));
    MapSide stock = map("stock", settings).runStock(outputs);
    MapSide deferred = map("deferred", settings).runDeferred(outputs);
    assertEquals(1, deferred.decisions().get("MAPS_DEFERRED"));
    assertSameSegments(stock, deferred);
  }

  @Test
  void indexesThatHadoopWritesToDiskAreReadBack() throws Exception {
    JobConf settings = MapSide.textSettings(PARTITIONS);
    settings.setInt(MRJobConfig.INDEX_CACHE_MEMORY_LIMIT, 2 * PARTITIONS * 24);
    List<Output> outputs = distinctRecords(20_000, new Random(8));
    MapSide stock = map("stock", settings).runStock(outputs);
    MapSide deferred = map("deferred", settings).runDeferred(outputs);
    assertTrue(deferred.files().keySet().stream().anyMatch(n -> n.endsWith(".out.index")));
    assertSameSegments(stock, deferred);
  }

  @Test
  void emptyPartitionsAndNarrowOnes() throws Exception {
    JobConf settings = MapSide.textSettings(50);
    List<Output> outputs = new ArrayList<>();
    for (Output output : distinctRecords(15_000, new Random(9))) {
      outputs.add(new Output(output.key(), output.value(), output.partition() * 20));
    }
    outputs.add(new Output(new Text("only"), new BytesWritable(), 49));
    MapSide stock = map("stock", settings).runStock(outputs);
    MapSide deferred = map("deferred", settings).runDeferred(outputs);
    assertSameSegments(stock, deferred);
  }

  @Test
  void otherKeysAndRegisteredOnes() throws Exception {
    JobConf settings = MapSide.settings(LongWritable.class, BytesWritable.class, PARTITIONS);
    List<Output> outputs = longRecords();
    MapSide stock = map("stock", settings).runStock(outputs);
    MapSide deferred = map("deferred", settings).runDeferred(outputs);
    assertSameSegments(stock, deferred);

    settings.setOutputKeyComparatorClass(UnsignedLongs.class);
    settings.set(Keys.ORDER_PREFIX + UnsignedLongs.class.getName(), "fixed:8");
    stock = map("stock-registered", settings).runStock(outputs);
    deferred = map("registered", settings).runDeferred(outputs);
    assertSameSegments(stock, deferred);
  }

  @Test
  void aWrongRegistrationIsFoundAndHadoopMerges() throws Exception {
    JobConf settings = MapSide.settings(LongWritable.class, BytesWritable.class, PARTITIONS);
    settings.setOutputKeyComparatorClass(UnsignedLongs.class);
    settings.set(Keys.ORDER_PREFIX + UnsignedLongs.class.getName(), "long");
    List<Output> outputs = longRecords();
    MapSide stock = map("stock", settings).runStock(outputs);
    MapSide ours = map("ours", settings).runDeferred(outputs);
    assertEquals(Map.of("MAPS_STOCK_WRONG_ORDER", 1L), ours.decisions());
    assertArrayEquals(Files.readAllBytes(stock.fileOut()), Files.readAllBytes(ours.fileOut()));
    settings.set(Keys.ORDER_PREFIX + UnsignedLongs.class.getName(), "fixed:9");
    assertEquals(
        Map.of("MAPS_STOCK_WRONG_ORDER", 1L),
        map("too-long", settings).runDeferred(outputs).decisions());
    settings.set(Keys.ORDER_PREFIX + UnsignedLongs.class.getName(), "eight bytes");
    assertEquals(
        Map.of("MAPS_STOCK_WRONG_ORDER", 1L),
        map("no-description", settings).runDeferred(outputs).decisions());
  }

  @Test
  void spillsStayOnOneDisk() throws Exception {
    MapSide deferred =
        new MapSide(dir, "deferred", 4, 0, MapSide.textSettings(PARTITIONS))
            .runDeferred(distinctRecords(20_000, new Random(1)));
    assertEquals(1, deferred.decisions().get("MAPS_DEFERRED"));
    Map<String, Integer> files = deferred.files();
    assertTrue(files.size() >= 5, files.toString());
    assertEquals(1, new HashSet<>(files.values()).size(), files.toString());
  }

  @Test
  void spillsOnSeveralDisksAreMergedByHadoop() throws Exception {
    JobConf settings = MapSide.textSettings(PARTITIONS);
    List<Output> outputs = distinctRecords(20_000, new Random(1));
    MapSide stock = map("stock", settings).runStock(outputs);
    MapSide ours = new MapSide(dir, "ours", 2, 0, settings);
    ours.run(
        new DeferredMapOutputBuffer<>() {
          @Override
          ByteBuffer serviceMetaData() {
            return service();
          }

          @Override
          public void init(MapOutputCollector.Context context)
              throws IOException, ClassNotFoundException {
            MapOutputFile spread = ours.task().getMapOutputFile();
            super.init(context);
            bypassPin(this, ours.task(), spread);
          }
        },
        outputs);
    assertEquals(Map.of("MAPS_STOCK_SEVERAL_DISKS", 1L), ours.decisions());
    assertArrayEquals(Files.readAllBytes(stock.fileOut()), Files.readAllBytes(ours.fileOut()));
  }

  @Test
  void theIndexMakesAStockServiceSendNothing() throws Exception {
    MapSide deferred =
        map("deferred", MapSide.textSettings(PARTITIONS))
            .runDeferred(distinctRecords(20_000, new Random(1)));
    long end = Files.size(deferred.fileOut());
    for (int partition = 0; partition < PARTITIONS; partition++) {
      IndexRecord at = deferred.index().getIndex(partition);
      assertTrue(at.startOffset >= end);
      end = at.startOffset + at.partLength;
    }
  }

  @Test
  void theServiceMayReadSpillsWhateverTheUmask() throws Exception {
    JobConf settings = MapSide.textSettings(PARTITIONS);
    settings.set("fs.permissions.umask-mode", "077");
    MapSide deferred =
        map("deferred", settings).runDeferred(distinctRecords(20_000, new Random(1)));
    List<Path> files = new ArrayList<>();
    files.add(deferred.fileOut());
    files.add(deferred.fileOut().resolveSibling("file.out.index"));
    Manifest.read(deferred.fileOut()).segments(0).forEach(s -> files.add(s.file()));
    for (Path file : files) {
      assertEquals("rw-r-----", PosixFilePermissions.toString(Files.getPosixFilePermissions(file)));
    }
  }

  @Test
  void outputsThatCannotBeDeferredAreMergedByHadoop() throws Exception {
    assertStock("SWITCHED_OFF", job -> job.setBoolean(Keys.DEFER, false));
    assertStock("UBER", job -> job.setBoolean("mapreduce.task.uberized", true));
    assertStock("COMPRESSED", job -> job.setCompressMapOutput(true));
    assertStock("COMBINER", job -> job.setCombinerClass(IdentityReducer.class));
    assertStock(
        "COMBINER",
        job ->
            job.setClass(
                MRJobConfig.COMBINE_CLASS_ATTR,
                org.apache.hadoop.mapreduce.Reducer.class,
                org.apache.hadoop.mapreduce.Reducer.class));
    assertStock("UNKNOWN_ORDER", job -> job.setOutputKeyComparatorClass(Backwards.class));
    assertStock("MANY_SPILLS", job -> job.setInt(Keys.MAX_SPILLS, 3));
    assertStock("FEW_SPILLS", job -> job.setInt(Keys.MIN_SPILLS, 40));
    assertStock("FEW_SPILLS", job -> job.setInt(MRJobConfig.IO_SORT_MB, 20));
    assertStock("SMALL_RECORDS", job -> job.setLong(Keys.MIN_RECORD_BYTES, 1000));
    assertStock("SMALL_SEGMENTS", job -> job.setLong(Keys.MIN_SEGMENT_BYTES, 1 << 20));
  }

  /** The audit suspected that a manifest of 64 MiB is too much for the node that serves it. */
  @Test
  void aManifestThatNodesWouldRefuseIsNotWritten() {
    JobConf job = MapSide.textSettings(100_000);
    job.setLong(Keys.MIN_SEGMENT_BYTES, 0);
    TaskAttemptID attempt = TaskAttemptID.forName("attempt_1_0001_m_000000_0");
    ByteBuffer service = ByteBuffer.wrap(Capability.appendTo(ByteBuffer.allocate(4)));
    DeferRules rules = new DeferRules(job, attempt, service);
    assertEquals(Optional.empty(), rules.afterRecords(2, 1_000_000, 1 << 30));
    Refusal refusal = rules.afterRecords(3, 1_000_000, 1 << 30).orElseThrow();
    assertEquals("MAPS_STOCK_LARGE_MANIFEST", refusal.reason().counter());
    assertTrue(refusal.detail().contains("3 spills for 100000 reducers"), refusal.detail());
  }

  @Test
  void withoutAServiceThatMergesTasksDo() throws Exception {
    List<Output> outputs = distinctRecords(20_000, new Random(1));
    JobConf settings = MapSide.textSettings(PARTITIONS);
    MapSide none = map("none", settings).withService(null).runDeferred(outputs);
    assertEquals(Map.of("MAPS_STOCK_NO_SERVICE", 1L), none.decisions());
    MapSide stock = map("stock", settings).withService(ByteBuffer.allocate(4));
    assertEquals(Map.of("MAPS_STOCK_NO_SERVICE", 1L), stock.runDeferred(outputs).decisions());
    byte[] old = Capability.appendTo(ByteBuffer.allocate(4));
    old[old.length - 1] = 0;
    MapSide older = map("older", settings).withService(ByteBuffer.wrap(old));
    assertEquals(Map.of("MAPS_STOCK_OLD_SERVICE", 1L), older.runDeferred(outputs).decisions());
  }

  @Test
  void laterAttemptsMerge() throws Exception {
    MapSide second =
        new MapSide(dir, "second", 1, 1, MapSide.textSettings(PARTITIONS))
            .runDeferred(distinctRecords(20_000, new Random(1)));
    assertEquals(Map.of("MAPS_STOCK_RETRY", 1L), second.decisions());
    assertFalse(Manifest.isManifest(second.fileOut()));
  }

  @Test
  void noRecordsAreHadoopsEmptyOutput() throws Exception {
    MapSide none = map("none", MapSide.textSettings(PARTITIONS)).runDeferred(List.of());
    assertEquals(Map.of("MAPS_STOCK_FEW_SPILLS", 1L), none.decisions());
    assertEquals(PARTITIONS * 6L, Files.size(none.fileOut()));
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aFailedSpillFailsTheTaskAsInHadoop(boolean onlyTheLast) throws Exception {
    MapSide map = map("failing", MapSide.textSettings(1));
    List<Output> outputs = new ArrayList<>(distinctRecords(20_000, new Random(1)));
    outputs.replaceAll(o -> new Output(o.key(), o.value(), 0));
    IOException e =
        assertThrows(
            IOException.class,
            () ->
                map.run(
                    new DeferredMapOutputBuffer<>() {
                      private boolean failing = !onlyTheLast;

                      @Override
                      ByteBuffer serviceMetaData() {
                        return service();
                      }

                      @Override
                      public int compare(int i, int j) {
                        if (failing && numSpills > 0) {
                          throw new IllegalStateException("no comparing today");
                        }
                        return super.compare(i, j);
                      }

                      @Override
                      public void flush()
                          throws IOException, ClassNotFoundException, InterruptedException {
                        spillLock.lock();
                        while (spillInProgress) {
                          spillDone.await();
                        }
                        spillLock.unlock();
                        failing = true;
                        super.flush();
                      }
                    },
                    outputs));
    assertEquals("Spill failed", e.getMessage());
    assertEquals("no comparing today", e.getCause().getMessage());
    assertEquals(Map.of(), map.decisions());
  }

  /** Runs with one change to the job. Expects Hadoop's bytes, and that the reason is counted. */
  private void assertStock(String reason, Consumer<JobConf> change) throws Exception {
    JobConf settings = MapSide.textSettings(PARTITIONS);
    change.accept(settings);
    List<Output> outputs = distinctRecords(20_000, new Random(4));
    String name = reason + System.nanoTime();
    MapSide stock = map("stock" + name, settings).runStock(outputs);
    MapSide ours = map("ours" + name, settings).runDeferred(outputs);
    assertEquals(Map.of("MAPS_STOCK_" + reason, 1L), ours.decisions());
    assertArrayEquals(Files.readAllBytes(stock.fileOut()), Files.readAllBytes(ours.fileOut()));
    assertEquals(
        stock.counter(TaskCounter.SPILLED_RECORDS), ours.counter(TaskCounter.SPILLED_RECORDS));
    assertEquals(Set.of("file.out", "file.out.index"), ours.files().keySet());
  }

  private static void assertSameSegments(MapSide stock, MapSide deferred) throws IOException {
    assertTrue(Manifest.isManifest(deferred.fileOut()));
    Manifest manifest = Manifest.read(deferred.fileOut());
    assertEquals(stock.index().size(), manifest.partitions());
    for (int partition = 0; partition < manifest.partitions(); partition++) {
      byte[] expected = segment(stock, partition);
      List<Segment> segments = manifest.segments(partition);
      assertArrayEquals(expected, merge(segments), "partition " + partition);
      IndexRecord index = deferred.index().getIndex(partition);
      assertEquals(expected.length, index.partLength);
      assertEquals(expected.length - 4, index.rawLength);
    }
  }

  private MapSide map(String name, JobConf settings) throws IOException {
    return new MapSide(dir, name, 1, 0, settings);
  }

  private static ByteBuffer service() {
    return ByteBuffer.wrap(Capability.appendTo(ByteBuffer.allocate(4)));
  }

  /** Lets a task spread its spills as Hadoop does. */
  private static void bypassPin(
      DeferredMapOutputBuffer<?, ?> buffer, MapTask task, MapOutputFile spread) {
    try {
      var field = MapTask.MapOutputBuffer.class.getDeclaredField("mapOutputFile");
      field.setAccessible(true);
      field.set(buffer, spread);
      task.mapOutputFile = spread;
    } catch (ReflectiveOperationException e) {
      throw new AssertionError(e);
    }
  }

  private static List<Output> distinctRecords(int count, Random random) {
    List<Output> outputs = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      String key = "k".repeat(random.nextInt(3) * 100) + Integer.reverse(i);
      outputs.add(
          new Output(
              new Text(key), bytes(random, random.nextInt(200)), random.nextInt(PARTITIONS)));
    }
    Collections.shuffle(outputs, random);
    return outputs;
  }

  private static List<Output> longRecords() {
    Random random = new Random(6);
    List<Output> outputs = new ArrayList<>();
    for (int i = 0; i < 20_000; i++) {
      outputs.add(
          new Output(
              new LongWritable(random.nextLong()), bytes(random, 120), random.nextInt(PARTITIONS)));
    }
    return outputs;
  }

  private static BytesWritable bytes(Random random, int length) {
    byte[] bytes = new byte[length];
    random.nextBytes(bytes);
    return new BytesWritable(bytes);
  }

  private static byte[] segment(MapSide map, int partition) throws IOException {
    IndexRecord at = map.index().getIndex(partition);
    byte[] bytes = new byte[(int) at.partLength];
    try (RandomAccessFile file = new RandomAccessFile(map.fileOut().toFile(), "r")) {
      file.seek(at.startOffset);
      file.readFully(bytes);
    }
    return bytes;
  }

  private static byte[] merge(List<Segment> segments) throws IOException {
    byte[] bytes = new byte[(int) SegmentMerge.partLength(segments)];
    try (SegmentMerge merge =
        new SegmentMerge(
            io.merganser.hadoop.order.KeyOrder.parse(order(segments)), segments, 1 << 20)) {
      for (int at = 0; at < bytes.length; ) {
        at += merge.read(bytes, at, bytes.length - at);
      }
      assertEquals(-1, merge.read(new byte[1], 0, 1));
    }
    return bytes;
  }

  private static String order(List<Segment> segments) throws IOException {
    Path application = segments.get(0).file().getParent();
    try (var walk = Files.walk(application)) {
      Path fileOut = walk.filter(p -> p.endsWith("file.out")).findFirst().orElseThrow();
      return Manifest.read(fileOut).order().description();
    }
  }

  /** The records of a segment, each a key and a value, read by Hadoop. */
  private static List<List<byte[]>> records(byte[] segment) throws IOException {
    Path file = Files.createTempFile("segment", null);
    try {
      Files.write(file, segment);
      JobConf conf = new JobConf(false);
      FileSystem fs = FileSystem.getLocal(conf).getRaw();
      List<List<byte[]>> records = new ArrayList<>();
      try (FSDataInputStream in = fs.open(new org.apache.hadoop.fs.Path(file.toUri()))) {
        IFile.Reader<Writable, Writable> reader =
            new IFile.Reader<>(conf, in, segment.length, null, null);
        DataInputBuffer key = new DataInputBuffer();
        while (reader.nextRawKey(key)) {
          DataInputBuffer value = new DataInputBuffer();
          reader.nextRawValue(value);
          records.add(
              List.of(
                  Arrays.copyOf(key.getData(), key.getLength()),
                  Arrays.copyOf(value.getData(), value.getLength())));
        }
      }
      return records;
    } finally {
      Files.delete(file);
    }
  }

  /** The values of each key, in any order. The keys must come in order. */
  private static Map<ByteBuffer, Map<ByteBuffer, Integer>> groups(List<List<byte[]>> records) {
    Map<ByteBuffer, Map<ByteBuffer, Integer>> groups = new HashMap<>();
    byte[] last = null;
    for (List<byte[]> record : records) {
      assertTrue(
          last == null
              || Arrays.compareUnsigned(
                      last, 1, last.length, record.get(0), 1, record.get(0).length)
                  <= 0);
      last = record.get(0);
      groups
          .computeIfAbsent(ByteBuffer.wrap(record.get(0)), key -> new HashMap<>())
          .merge(ByteBuffer.wrap(record.get(1)), 1, Integer::sum);
    }
    return groups;
  }

  /** Text, the greatest first. */
  public static final class Backwards extends WritableComparator {
    /** Used by Hadoop. */
    public Backwards() {
      super(Text.class);
    }

    @Override
    public int compare(byte[] a, int ai, int an, byte[] b, int bi, int bn) {
      return new Text.Comparator().compare(b, bi, bn, a, ai, an);
    }
  }
}
