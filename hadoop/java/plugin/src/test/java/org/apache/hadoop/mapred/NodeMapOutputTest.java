package org.apache.hadoop.mapred;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.manifest.Manifest;
import io.merganser.hadoop.node.AskedMap;
import io.merganser.hadoop.node.FakeHdfs;
import io.merganser.hadoop.node.FakeNode;
import io.merganser.hadoop.node.FakeNode.Conduct;
import io.merganser.hadoop.node.MapredNodeInputFormat;
import io.merganser.hadoop.order.KeyOrder;
import io.merganser.hadoop.segment.Segment;
import io.merganser.hadoop.segment.SegmentMerge;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSError;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalDirAllocator;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.io.DataInputBuffer;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.compress.BZip2Codec;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.Compressor;
import org.apache.hadoop.io.compress.Decompressor;
import org.apache.hadoop.io.compress.DefaultCodec;
import org.apache.hadoop.mapreduce.MRConfig;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.apache.hadoop.mapreduce.counters.LimitExceededException;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormatCounter;
import org.apache.hadoop.mapreduce.lib.input.FileSplit;
import org.apache.hadoop.util.Progressable;
import org.apache.hadoop.util.ReflectionUtils;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Map tasks that count words, with a node that behaves and with ones that don't. */
@Timeout(120)
class NodeMapOutputTest {
  private static final int PARTITIONS = 3;
  private static final long BLOCK_BYTES = 8_000;

  @TempDir Path dir;
  private Path input;
  private Path socket;
  private FakeNode node;
  private JobConf settings;
  private FileSplit split;

  @BeforeEach
  void start() throws IOException {
    input = dir.resolve("input");
    Files.write(input, text(30_000));
    // The path of a socket is short.
    socket = Files.createTempDirectory("node").resolve("s");
    node = new FakeNode(socket, input);
    settings = NodeTask.settings(socket, PARTITIONS);
    split = new FileSplit(FakeHdfs.use(settings, input, BLOCK_BYTES), 5_001, 12_345, null);
  }

  @AfterEach
  void stop() throws IOException {
    node.close();
    Files.deleteIfExists(socket);
    Files.delete(socket.getParent());
  }

  private static byte[] text(int bytes) {
    Random random = new Random(3);
    StringBuilder text = new StringBuilder();
    while (text.length() < bytes) {
      text.append("word").append(random.nextInt(500)).append(random.nextInt(8) == 0 ? '\n' : ' ');
    }
    return text.toString().getBytes(StandardCharsets.UTF_8);
  }

  private MapSide side(String name) throws IOException {
    return new MapSide(dir, name, 1, 0, settings);
  }

  /** The same task without a node. */
  private MapSide stock() throws Exception {
    MapSide side = new MapSide(dir, "stock" + System.nanoTime(), 1, 0, settings);
    side.job().setBoolean("merganser.node.map", false);
    new NodeTask(side).run(split);
    assertEquals(Map.of("MAPS_ON_HOST_SWITCHED_OFF", 1L), side.decisions());
    return side;
  }

  @Test
  void aMapOnTheNodeHasTheOutputAndTheCountersOfStockHadoop() throws Exception {
    MapSide stock = stock();
    MapSide side = side("node");
    assertEquals(0, new NodeTask(side).run(split), "the mapper got lines");
    assertEquals(1, side.decisions().get("MAPS_ON_NODE"));
    assertArrayEquals(Files.readAllBytes(stock.fileOut()), Files.readAllBytes(side.fileOut()));
    for (int partition = 0; partition < PARTITIONS; partition++) {
      assertEquals(
          stock.index().getIndex(partition).startOffset,
          side.index().getIndex(partition).startOffset);
      assertEquals(
          stock.index().getIndex(partition).partLength,
          side.index().getIndex(partition).partLength);
      assertEquals(
          stock.index().getIndex(partition).rawLength, side.index().getIndex(partition).rawLength);
    }
    for (TaskCounter counter :
        List.of(
            TaskCounter.MAP_OUTPUT_RECORDS,
            TaskCounter.MAP_OUTPUT_BYTES,
            TaskCounter.MAP_OUTPUT_MATERIALIZED_BYTES,
            TaskCounter.SPILLED_RECORDS,
            TaskCounter.COMBINE_INPUT_RECORDS,
            TaskCounter.COMBINE_OUTPUT_RECORDS)) {
      assertTrue(stock.counter(counter) > 0, counter.name());
      assertEquals(stock.counter(counter), side.counter(counter), counter.name());
    }
    assertTrue(side.counter(TaskCounter.MAP_INPUT_RECORDS) > 100);
    assertEquals(7, side.decisions().get("NODE_CPU_MILLISECONDS"));
    assertEquals(12_345, side.decisions().get("NODE_BYTES_READ"));
    assertEquals(Set.of("file.out", "file.out.index"), side.files().keySet());
    assertEquals(1, side.task().getSortPhase().get());
  }

  @Test
  void theRequestNamesTheBlocksAndTheTail() throws Exception {
    settings.set("textinputformat.record.delimiter", "\n");
    new NodeTask(side("node")).run(split);
    AskedMap asked = node.asked().get(0);
    assertEquals(1, asked.kind());
    assertEquals("wordcount", asked.program());
    assertEquals(FakeHdfs.POOL, asked.pool());
    // 5,001 to 17,346 in blocks of 8,000.
    long[][] ranges = {
      {1000, 7, 8000, 5001, 2999}, {1001, 8007, 8000, 0, 8000}, {1002, 16_007, 8000, 0, 1346}
    };
    assertArrayEquals(ranges, asked.ranges().toArray());
    assertEquals(5_001, asked.start());
    assertEquals(17_346, asked.end());
    byte[] all = Files.readAllBytes(input);
    assertArrayEquals(Arrays.copyOfRange(all, 17_346, 17_346 + 4096), asked.tail());
    assertFalse(asked.atEndOfFile());
    assertArrayEquals(new byte[] {'\n'}, asked.delimiter());
    assertEquals(Integer.MAX_VALUE, asked.lineMax());
    assertEquals(PARTITIONS, asked.partitions());
    assertEquals(1, asked.keyType());
    assertEquals(2, asked.valueType());
    assertEquals(1, asked.combine());
    assertEquals(16 << 20, asked.memory());
    assertEquals(5_000, asked.patience());
  }

  @Test
  void jobsOfTheOldApiRunOnTheNodeToo() throws Exception {
    MapSide stock = stock();
    settings.setUseNewMapper(false);
    settings.setMapperClass(org.apache.hadoop.mapred.lib.TokenCountMapper.class);
    settings.unset(MRJobConfig.COMBINE_CLASS_ATTR);
    settings.set("merganser.node.ssdlet", "wordcount");
    settings.set("merganser.node.combine", "sum");
    settings.setCombinerClass(Sum.class);
    var old =
        new org.apache.hadoop.mapred.FileSplit(split.getPath(), 5_001, 12_345, (String[]) null);
    MapSide side = side("old");
    assertEquals(0, new NodeTask(side).runOld(old));
    assertEquals(1, side.decisions().get("MAPS_ON_NODE"));
    assertArrayEquals(Files.readAllBytes(stock.fileOut()), Files.readAllBytes(side.fileOut()));

    node.behave(Conduct.ERROR, 1);
    MapSide host = side("old-host");
    assertTrue(new NodeTask(host).runOld(old) > 0);
    assertEquals(Map.of("MAPS_ON_HOST_BUSY", 1L), host.decisions());
    assertArrayEquals(Files.readAllBytes(stock.fileOut()), Files.readAllBytes(host.fileOut()));
  }

  @Test
  void severalSpillsAreDeferredIfTheServiceMerges() throws Exception {
    node.spill(3);
    MapSide side = side("node");
    new NodeTask(side).run(split);
    assertEquals(1, side.decisions().get("MAPS_ON_NODE"));
    assertEquals(1, side.decisions().get("MAPS_DEFERRED"));
    Manifest manifest = Manifest.read(side.fileOut());
    assertEquals(3, manifest.spills().size());
    MapSide stock = stock();
    for (int partition = 0; partition < PARTITIONS; partition++) {
      byte[] merged = merge(manifest.segments(partition));
      assertEquals(side.index().getIndex(partition).partLength, merged.length);
      assertEquals(counts(segment(stock, partition)), counts(merged));
    }
  }

  @Test
  void severalSpillsAreMergedByTheTaskIfNoServiceDoes() throws Exception {
    node.spill(3);
    MapSide side = side("node").withService(null);
    new NodeTask(side).run(split);
    assertEquals(1, side.decisions().get("MAPS_ON_NODE"));
    assertEquals(1, side.decisions().get("MAPS_STOCK_NO_SERVICE"));
    assertEquals(Set.of("file.out", "file.out.index"), side.files().keySet());
    MapSide stock = stock();
    long records = 0;
    for (int partition = 0; partition < PARTITIONS; partition++) {
      assertEquals(counts(segment(stock, partition)), counts(segment(side, partition)));
    }
    assertEquals(
        Files.size(side.fileOut()), side.counter(TaskCounter.MAP_OUTPUT_MATERIALIZED_BYTES));
    // Each record was written twice, as in Hadoop's merge.
    records = side.counter(TaskCounter.COMBINE_OUTPUT_RECORDS);
    assertEquals(2 * records, side.counter(TaskCounter.SPILLED_RECORDS));
  }

  /** Two codecs that need no native library, and one without a compressor. */
  @ParameterizedTest
  @ValueSource(classes = {DefaultCodec.class, BZip2Codec.class, NoCompressor.class})
  void outputsAreCompressedAsInStockHadoop(Class<? extends CompressionCodec> codec)
      throws Exception {
    settings.setCompressMapOutput(true);
    settings.setMapOutputCompressorClass(codec);
    MapSide stock = stock();
    MapSide one = side("one");
    assertEquals(0, new NodeTask(one).run(split), "the mapper got lines");
    assertEquals(1, one.decisions().get("MAPS_ON_NODE"));
    assertArrayEquals(Files.readAllBytes(stock.fileOut()), Files.readAllBytes(one.fileOut()));
    for (int partition = 0; partition < PARTITIONS; partition++) {
      assertEquals(
          stock.index().getIndex(partition).rawLength, one.index().getIndex(partition).rawLength);
      assertEquals(counts(stock, partition, codec), counts(one, partition, codec));
    }
    for (TaskCounter counter :
        List.of(TaskCounter.MAP_OUTPUT_MATERIALIZED_BYTES, TaskCounter.SPILLED_RECORDS)) {
      assertEquals(stock.counter(counter), one.counter(counter), counter.name());
    }

    node.spill(3);
    MapSide several = side("several");
    assertEquals(0, new NodeTask(several).run(split), "the mapper got lines");
    assertEquals(1, several.decisions().get("MAPS_STOCK_COMPRESSED"));
    for (int partition = 0; partition < PARTITIONS; partition++) {
      assertEquals(counts(stock, partition, codec), counts(several, partition, codec));
    }
    assertEquals(Set.of("file.out", "file.out.index"), several.files().keySet());
  }

  /** A codec that gives Hadoop no compressor: then nothing is compressed. */
  public static final class NoCompressor extends DefaultCodec {
    @Override
    public Compressor createCompressor() {
      return null;
    }

    @Override
    public Class<? extends Compressor> getCompressorType() {
      return null;
    }

    @Override
    public Decompressor createDecompressor() {
      return null;
    }

    @Override
    public Class<? extends Decompressor> getDecompressorType() {
      return null;
    }
  }

  @Test
  void aCodecThatFailsIsAFailureOfTheTask() throws Exception {
    settings.setCompressMapOutput(true);
    settings.set(MRJobConfig.MAP_OUTPUT_COMPRESS_CODEC, "no.such.Codec");
    assertThrows(IOException.class, this::stock);
    assertThrows(IllegalArgumentException.class, () -> new NodeTask(side("node")).run(split));
  }

  @ParameterizedTest
  @CsvSource({
    "ERROR, 1, BUSY",
    "ERROR, 2, PROTOCOL",
    "ERROR, 3, PROGRAM",
    "ERROR, 4, PROGRAM",
    "ERROR, 5, PROGRAM",
    "ERROR, 6, NO_LOCAL_REPLICA",
    "ERROR, 7, GENERATION",
    "ERROR, 8, LENGTH",
    "ERROR, 9, DELIMITER",
    "ERROR, 10, MEMORY",
    "ERROR, 11, CHECKSUM_KIND",
    "ERROR, 12, PROGRAM_ABSENT",
    "ERROR, 13, NO_UPLOADS",
    "ERROR, 14, PROGRAM",
    "ERROR, 101, DAMAGED_BLOCK",
    "ERROR, 102, READ_FAILED",
    "ERROR, 103, LONG_RECORD",
    "ERROR, 104, PROTOCOL",
    "ERROR, 105, PROGRAM_FAILED",
    "ERROR, 106, MISTAKE",
    "ERROR, 999, PROTOCOL",
    "ERROR_AFTER_DATA, 3000, DAMAGED_BLOCK",
    "DIES, 0, DIED",
    "DIES, 3000, DIED",
    "DIES_BEFORE_END, 0, DIED",
    "STALLS, 3000, SILENT",
    "GARBAGE, 3000, PROTOCOL",
    "HUGE_FRAME, 3000, PROTOCOL",
    "WRONG_BYTE, 3000, DAMAGED_ANSWER",
    "SHORT_SPILL, 1, DAMAGED_ANSWER",
    "LONG_SPILL, 0, DAMAGED_ANSWER",
    "WRONG_LENGTHS, 0, DAMAGED_ANSWER",
    "WRONG_RECORDS, 0, DAMAGED_ANSWER",
    "WRONG_COUNTS, 0, PROTOCOL",
    "NEGATIVE_COUNTS, 0, PROTOCOL",
    "NOT_ACCEPTED, 0, PROTOCOL",
    "NO_SPILL, 0, PROTOCOL",
    "CUT_INDEX, 0, PROTOCOL",
    "MANY_SPILLS, 1001, MANY_SPILLS",
  })
  void whateverTheNodeDoesTheOutputIsThatOfStockHadoop(Conduct conduct, int value, String reason)
      throws Exception {
    settings.setLong("merganser.node.timeout-ms", conduct == Conduct.STALLS ? 300 : 20_000);
    settings.setInt("merganser.node.patience-ms", 0);
    MapSide stock = stock();
    node.behave(conduct, value);
    MapSide side = side("node");
    assertTrue(new NodeTask(side).run(split) > 0, "the mapper got no lines");
    assertEquals(Map.of("MAPS_ON_HOST_" + reason, 1L), side.decisions());
    assertArrayEquals(Files.readAllBytes(stock.fileOut()), Files.readAllBytes(side.fileOut()));
    assertEquals(Set.of("file.out", "file.out.index"), side.files().keySet());
    for (TaskCounter counter : TaskCounter.values()) {
      assertEquals(stock.counter(counter), side.counter(counter), counter.name());
    }
  }

  /** Lets the job bring a program. */
  private void bringProgram() throws IOException {
    Path module = Files.write(dir.resolve("words.wasm"), new byte[] {0, 'a', 's', 'm'});
    settings.set("merganser.node.ssdlet", "wasm:" + module);
    settings.set("merganser.node.combine", "sum");
  }

  @Test
  void aNodeGetsTheProgramOfAJobOnce() throws Exception {
    bringProgram();
    MapSide stock = stock();
    for (String name : List.of("first", "second")) {
      MapSide side = side(name);
      assertEquals(0, new NodeTask(side).run(split), "the mapper got lines");
      assertEquals(1, side.decisions().get("MAPS_ON_NODE"));
      assertArrayEquals(Files.readAllBytes(stock.fileOut()), Files.readAllBytes(side.fileOut()));
    }
    assertEquals(List.of(2, 2, 2), node.asked().stream().map(AskedMap::kind).toList());
    assertEquals(1, node.uploads().size());
    assertArrayEquals(new byte[] {0, 'a', 's', 'm'}, node.uploads().get(0));
  }

  @ParameterizedTest
  @CsvSource({
    "OLD, 0, PROTOCOL",
    "ERROR, 105, PROGRAM_FAILED",
    "ERROR_AFTER_DATA, 3000, DAMAGED_BLOCK",
    "REFUSES_UPLOADS, 13, NO_UPLOADS",
    "REFUSES_UPLOADS, 14, PROGRAM",
    "REFUSES_UPLOADS, 12, PROGRAM_ABSENT",
    "GARBAGE_FOR_UPLOADS, 0, PROTOCOL",
    "FORGETS, 0, PROGRAM_ABSENT",
  })
  void withoutTheProgramOfAJobTheOutputIsThatOfStockHadoop(
      Conduct conduct, int value, String reason) throws Exception {
    bringProgram();
    MapSide stock = stock();
    node.behave(conduct, value);
    MapSide side = side("node");
    assertTrue(new NodeTask(side).run(split) > 0, "the mapper got no lines");
    assertEquals(Map.of("MAPS_ON_HOST_" + reason, 1L), side.decisions());
    assertArrayEquals(Files.readAllBytes(stock.fileOut()), Files.readAllBytes(side.fileOut()));
  }

  /** A task of this release and a node of the one before it, which has built-in programs only. */
  @Test
  void anOlderNodeMapsWhatItKnows() throws Exception {
    node.behave(Conduct.OLD, 0);
    MapSide side = side("node");
    assertEquals(0, new NodeTask(side).run(split), "the mapper got lines");
    assertEquals(1, side.decisions().get("MAPS_ON_NODE"));
  }

  @Test
  void withoutANodeTheOutputIsThatOfStockHadoop() throws Exception {
    MapSide stock = stock();
    node.close();
    for (String name : List.of("closed", "gone")) {
      MapSide side = side(name);
      new NodeTask(side).run(split);
      assertEquals(Map.of("MAPS_ON_HOST_ABSENT", 1L), side.decisions());
      assertArrayEquals(Files.readAllBytes(stock.fileOut()), Files.readAllBytes(side.fileOut()));
      Files.deleteIfExists(socket);
    }
  }

  @Test
  void aTaskReportsProgressWhileTheNodeWorks() throws Exception {
    node.behave(Conduct.SLOW, 3);
    MapSide side = side("node");
    side.reporter().resetProgressFlag();
    new NodeTask(side).run(split);
    assertEquals(1, side.decisions().get("MAPS_ON_NODE"));
    assertTrue(side.reporter().resetProgressFlag(), "no progress was reported");
    assertTrue(side.reporter().getProgress() > 0);
  }

  /** A sort buffer of this size doesn't fit into the heap of the tests. */
  @Test
  void aTaskWhoseMapRanOnTheNodeTakesNoMemoryForSorting() throws Exception {
    settings.setInt(MRJobConfig.IO_SORT_MB, 2047);
    MapSide side = side("node");
    assertEquals(0, new NodeTask(side).run(split));
    assertEquals(1, side.decisions().get("MAPS_ON_NODE"));
  }

  @Test
  void aRecordAfterTheNodesMapIsAnError() throws Exception {
    NodeTask task = new NodeTask(side("node"));
    NodeMapOutput<Text, IntWritable> output = task.collector();
    assertEquals(0, task.read(split, output));
    // As a mapper does that writes in its cleanup.
    IOException e =
        assertThrows(
            IOException.class, () -> output.collect(new Text("late"), new IntWritable(1), 0));
    assertTrue(e.getMessage().contains("merganser.node.ssdlet"), e.getMessage());
    output.close();
  }

  @Test
  void aRecordBeforeTheFirstLineKeepsTheMapOnTheHost() throws Exception {
    MapSide side = side("node");
    NodeTask task = new NodeTask(side);
    NodeMapOutput<Text, IntWritable> output = task.collector();
    output.collect(new Text("early"), new IntWritable(1), 0);
    assertTrue(task.run(split, output) > 0);
    assertEquals(Map.of("MAPS_ON_HOST_RECORDS_BEFORE", 1L), side.decisions());
    assertEquals(0, node.asked().size());
  }

  @Test
  void aFileThatChangesWhileItIsLookedAtStaysOnTheHost() throws Exception {
    MapSide stock = stock();
    FakeHdfs.grow(settings);
    MapSide side = side("node");
    assertTrue(new NodeTask(side).run(split) > 0);
    assertEquals(Map.of("MAPS_ON_HOST_HDFS_FAILED", 1L), side.decisions());
    assertEquals(0, node.asked().size());
    assertArrayEquals(Files.readAllBytes(stock.fileOut()), Files.readAllBytes(side.fileOut()));
  }

  /**
   * The disk is full when a spill is written (a long one) or closed (a short one), the first or a
   * later one: what was received is deleted, and the task maps by itself.
   */
  @ParameterizedTest(name = "{1} spills of {0} bytes, {2} fails")
  @CsvSource({
    "12345, 1, _spill_0.out",
    "300, 1, _spill_0.out",
    "12345, 3, _spill_1.out",
    "300, 3, _spill_1.out",
    "12345, 3, _spill_2.out"
  })
  void aFullDiskKeepsTheMapOnTheHost(long length, int spills, String full) throws Exception {
    split = new FileSplit(split.getPath(), 5_001, length, null);
    MapSide stock = stock();
    node.spill(spills);
    FullOnce.use(settings, full);
    MapSide side = side("node");
    assertTrue(new NodeTask(side).run(split) > 0);
    assertTrue(FullOnce.happened(), "no such file was written");
    assertEquals(Map.of("MAPS_ON_HOST_LOCAL_DISK", 1L), side.decisions());
    assertArrayEquals(Files.readAllBytes(stock.fileOut()), Files.readAllBytes(side.fileOut()));
    assertEquals(Set.of("file.out", "file.out.index"), side.files().keySet());
  }

  /**
   * The disk is full when the output is made of the spills that were received. Then the attempt
   * fails, as one of stock Hadoop does when it can't write its output, and the next one maps on the
   * host.
   */
  @ParameterizedTest(name = "{0} of {1} spills, compressed: {2}")
  @CsvSource({
    // With several spills that stay, this file is their manifest.
    "file.out, 3, false",
    "file.out.index, 3, false",
    "file.out.index, 1, false",
    "file.out, 1, true",
    "file.out, 3, true",
    "file.out.index, 3, true"
  })
  void aFullDiskAtTheEndFailsTheAttempt(String full, int spills, boolean compressed)
      throws Exception {
    settings.setBoolean(MRJobConfig.MAP_OUTPUT_COMPRESS, compressed);
    MapSide stock = stock();
    node.spill(spills);
    FullOnce.use(settings, full);
    MapSide side = side("node");
    assertNoSpace(() -> new NodeTask(side).run(split));
    assertTrue(FullOnce.happened(), "no such file was written");
    assertEquals(1, side.decisions().get("MAPS_ON_NODE"));
    assertEquals(0, side.counter(TaskCounter.MAP_OUTPUT_MATERIALIZED_BYTES));

    MapSide next = new MapSide(dir, "next", 1, 1, settings);
    assertTrue(new NodeTask(next).run(split) > 0);
    assertEquals(Map.of("MAPS_ON_HOST_RETRY", 1L), next.decisions());
    assertArrayEquals(Files.readAllBytes(stock.fileOut()), Files.readAllBytes(next.fileOut()));

    // Every attempt of stock Hadoop writes an index.
    FullOnce.use(settings, "file.out.index");
    settings.setBoolean("merganser.node.map", false);
    assertNoSpace(() -> new NodeTask(side("stock")).run(split));
  }

  /** Hadoop reports a failed write to a local file as an error of the file system. */
  private static void assertNoSpace(Executable task) {
    FSError e = assertThrows(FSError.class, task);
    assertTrue(e.getMessage().contains("No space left on device"), e.getMessage());
  }

  /** The local file system, whose disk is full for the first file with a given end of its name. */
  public static final class FullOnce extends LocalFileSystem {
    private static final AtomicReference<String> FULL = new AtomicReference<>();

    /** Called by Hadoop. */
    public FullOnce() {
      super(
          new RawLocalFileSystem() {
            @Override
            public FSDataOutputStream create(
                org.apache.hadoop.fs.Path file,
                boolean overwrite,
                int bufferSize,
                short replication,
                long blockSize,
                Progressable progress)
                throws IOException {
              String full = FULL.get();
              boolean isFull = full != null && file.getName().endsWith(full);
              return isFull && FULL.compareAndSet(full, null)
                  ? append(new org.apache.hadoop.fs.Path("/dev/full"), bufferSize, progress)
                  : super.create(file, overwrite, bufferSize, replication, blockSize, progress);
            }
          });
    }

    /** Lets a job find the disk full when it writes a file whose name ends so. */
    static void use(JobConf job, String name) {
      job.setClass("fs.file.impl", FullOnce.class, FileSystem.class);
      job.setBoolean("fs.file.impl.disable.cache", true);
      FULL.set(name);
    }

    /** Whether such a file was written. */
    static boolean happened() {
      return FULL.get() == null;
    }
  }

  @Test
  void spillsNeedRoomForTheMeanOfThoseBefore() throws Exception {
    node.spill(3);
    MapSide side = side("node");
    side.job().setClass(MRConfig.TASK_LOCAL_OUTPUT_CLASS, SizesAsked.class, MapOutputFile.class);
    side.task().setConf(side.job());
    SizesAsked.SIZES.clear();
    new NodeTask(side).run(split);
    List<Manifest.Spill> spills = Manifest.read(side.fileOut()).spills();
    long first = Arrays.stream(spills.get(0).partLengths()).sum();
    long second = Arrays.stream(spills.get(1).partLengths()).sum();
    assertEquals(
        List.of((long) LocalDirAllocator.SIZE_UNKNOWN, first, (first + second) / 2),
        SizesAsked.SIZES);
  }

  /** YARN's directories, and the sizes for which spills ask them. */
  public static final class SizesAsked extends YarnOutputFiles {
    private static final List<Long> SIZES = new CopyOnWriteArrayList<>();

    @Override
    public org.apache.hadoop.fs.Path getSpillFileForWrite(int number, long size)
        throws IOException {
      SIZES.add(size);
      return super.getSpillFileForWrite(number, size);
    }
  }

  @Test
  void aJobAtTheLimitOfCountersDoesNotFail() throws Exception {
    MapSide stock = stock();
    MapSide mapped = side("node");
    fillCounters(mapped);
    assertEquals(0, new NodeTask(mapped).run(split));
    assertArrayEquals(Files.readAllBytes(stock.fileOut()), Files.readAllBytes(mapped.fileOut()));
    node.spill(3);
    MapSide deferred = side("deferred");
    fillCounters(deferred);
    assertEquals(0, new NodeTask(deferred).run(split));
    assertEquals(3, Manifest.read(deferred.fileOut()).spills().size());
    MapSide merged = side("merged").withService(null);
    fillCounters(merged);
    assertEquals(0, new NodeTask(merged).run(split));
    assertEquals(Set.of("file.out", "file.out.index"), merged.files().keySet());
    node.behave(Conduct.ERROR, 1);
    MapSide host = side("host");
    fillCounters(host);
    assertTrue(new NodeTask(host).run(split) > 0);
    assertArrayEquals(Files.readAllBytes(stock.fileOut()), Files.readAllBytes(host.fileOut()));
    for (TaskCounter counter : TaskCounter.values()) {
      assertEquals(stock.counter(counter), host.counter(counter), counter.name());
    }
  }

  /** Gives a task all counters that a job may have. */
  private static void fillCounters(MapSide side) {
    // Hadoop's own readers have taken this one before the first record.
    side.reporter().getCounter(FileInputFormatCounter.BYTES_READ);
    assertThrows(
        LimitExceededException.class,
        () -> {
          for (int i = 0; i < 100_000; i++) {
            side.reporter().getCounter("job", "counter" + i);
          }
        });
  }

  @Test
  void withoutReducersTheMapRunsOnTheHost() throws Exception {
    settings.setNumReduceTasks(0);
    MapSide side = side("new");
    assertTrue(new NodeTask(side).run(split, new Discarded()) > 0);
    assertEquals(Map.of("MAPS_ON_HOST_NO_REDUCERS", 1L), side.decisions());

    MapSide oldSide = side("old");
    var old =
        new org.apache.hadoop.mapred.FileSplit(split.getPath(), 5_001, 12_345, (String[]) null);
    RecordReader<LongWritable, Text> reader =
        new MapredNodeInputFormat().getRecordReader(old, oldSide.job(), oldSide.reporter());
    assertTrue(reader.next(reader.createKey(), reader.createValue()));
    reader.close();
    assertEquals(Map.of("MAPS_ON_HOST_NO_REDUCERS", 1L), oldSide.decisions());
    assertEquals(0, node.asked().size());
  }

  /** The output of a job without reducers, which no collector gets. */
  private static final class Discarded implements MapOutputCollector<Text, IntWritable> {
    @Override
    public void init(MapOutputCollector.Context context) {
      // Nothing to prepare.
    }

    @Override
    public void collect(Text key, IntWritable value, int partition) {
      assertEquals(0, partition);
    }

    @Override
    public void flush() {
      // Nothing to write.
    }

    @Override
    public void close() {
      // Nothing to close.
    }
  }

  @Test
  void withAnotherCollectorTheMapRunsOnTheHost() throws Exception {
    MapSide side = side("node");
    MapTask.MapOutputBuffer<Text, IntWritable> stock = new MapTask.MapOutputBuffer<>();
    stock.init(side.context());
    assertTrue(new NodeTask(side).run(split, stock) > 0);
    assertEquals(Map.of("MAPS_ON_HOST_NO_COLLECTOR", 1L), side.decisions());
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "org.apache.hadoop.mapred.NodeMapOutput",
        "org.apache.hadoop.mapred.NodeMapOutput,org.apache.hadoop.mapred.NodeMapOutput,"
            + "org.apache.hadoop.mapred.MapTask$MapOutputBuffer",
        "org.apache.hadoop.mapred.NodeMapOutput,org.apache.hadoop.mapred.DeferredMapOutputBuffer"
      })
  void theNextCollectorOfTheListStandsIn(String collectors) throws Exception {
    MapSide stock = stock();
    settings.set(MRJobConfig.MAP_OUTPUT_COLLECTOR_CLASS_ATTR, collectors);
    node.behave(Conduct.ERROR, 1);
    MapSide side = side("node");
    new NodeTask(side).run(split);
    assertEquals(1, side.decisions().get("MAPS_ON_HOST_BUSY"));
    assertEquals(
        collectors.endsWith("DeferredMapOutputBuffer"),
        side.decisions().containsKey("MAPS_STOCK_NO_SERVICE"));
    assertArrayEquals(Files.readAllBytes(stock.fileOut()), Files.readAllBytes(side.fileOut()));
  }

  @Test
  void aRetryRunsOnTheHost() throws Exception {
    MapSide side = new MapSide(dir, "node", 1, 1, settings);
    assertTrue(new NodeTask(side).run(split) > 0);
    assertEquals(Map.of("MAPS_ON_HOST_RETRY", 1L), side.decisions());
    assertEquals(0, node.asked().size());
  }

  @Test
  void anEmptyMapIsHadoopsEmptyOutput() throws Exception {
    Files.write(input, " \n\t\n ".repeat(1000).getBytes(StandardCharsets.UTF_8));
    MapSide stock = stock();
    MapSide side = side("node");
    new NodeTask(side).run(new FileSplit(split.getPath(), 0, 2_000, null));
    assertEquals(1, side.decisions().get("MAPS_ON_NODE"));
    assertEquals(PARTITIONS * 6L, Files.size(side.fileOut()));
    assertArrayEquals(Files.readAllBytes(stock.fileOut()), Files.readAllBytes(side.fileOut()));
  }

  /** Adds integers up, in Hadoop's old API. */
  public static final class Sum extends MapReduceBase
      implements Reducer<Text, IntWritable, Text, IntWritable> {
    @Override
    public void reduce(
        Text key,
        java.util.Iterator<IntWritable> values,
        OutputCollector<Text, IntWritable> output,
        Reporter reporter)
        throws IOException {
      int sum = 0;
      while (values.hasNext()) {
        sum += values.next().get();
      }
      output.collect(key, new IntWritable(sum));
    }
  }

  private static byte[] segment(MapSide side, int partition) throws IOException {
    IndexRecord at = side.index().getIndex(partition);
    byte[] all = Files.readAllBytes(side.fileOut());
    return Arrays.copyOfRange(all, (int) at.startOffset, (int) (at.startOffset + at.partLength));
  }

  private static byte[] merge(List<Segment> segments) throws IOException {
    byte[] bytes = new byte[(int) SegmentMerge.partLength(segments)];
    try (SegmentMerge merge = new SegmentMerge(KeyOrder.parse("text"), segments, 1 << 20)) {
      for (int at = 0; at < bytes.length; ) {
        at += merge.read(bytes, at, bytes.length - at);
      }
    }
    return bytes;
  }

  private Map<String, Integer> counts(
      MapSide side, int partition, Class<? extends CompressionCodec> codec) throws IOException {
    return counts(segment(side, partition), ReflectionUtils.newInstance(codec, settings));
  }

  private Map<String, Integer> counts(byte[] segment) throws IOException {
    return counts(segment, null);
  }

  /** The sums of a segment's words, read by Hadoop. Words must come in order. */
  private Map<String, Integer> counts(byte[] segment, CompressionCodec codec) throws IOException {
    Path file = dir.resolve("segment");
    Files.write(file, segment);
    Map<String, Integer> counts = new HashMap<>();
    JobConf conf = new JobConf(false);
    FileSystem fs = FileSystem.getLocal(conf).getRaw();
    Text last = new Text();
    try (FSDataInputStream in = fs.open(new org.apache.hadoop.fs.Path(file.toUri()))) {
      IFile.Reader<Text, IntWritable> reader =
          new IFile.Reader<>(conf, in, segment.length, codec, null);
      DataInputBuffer key = new DataInputBuffer();
      DataInputBuffer value = new DataInputBuffer();
      while (reader.nextRawKey(key)) {
        reader.nextRawValue(value);
        Text word = new Text();
        word.readFields(key);
        assertTrue(last.compareTo(word) <= 0, last + " is before " + word);
        last = word;
        counts.merge(word.toString(), value.readInt(), Integer::sum);
      }
    }
    return counts;
  }
}
