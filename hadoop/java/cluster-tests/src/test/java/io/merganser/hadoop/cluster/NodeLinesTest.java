package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.cluster.NodeJob.Done;
import io.merganser.hadoop.cluster.NodeJob.Maps;
import io.merganser.hadoop.config.Keys;
import io.merganser.workloads.puma.DocumentIndex;
import io.merganser.workloads.puma.WordCount;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.StringTokenizer;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapred.MapReduceBase;
import org.apache.hadoop.mapred.OutputCollector;
import org.apache.hadoop.mapred.Reporter;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.LineRecordReader;
import org.apache.hadoop.mapreduce.lib.reduce.IntSumReducer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The lines of a split that the node maps are exactly those of Hadoop's own reader: on random
 * bytes, with splits and blocks of any size, and with maps on the node and on the host in turn.
 */
class NodeLinesTest {
  private static final long BLOCK_BYTES = 2048;
  private static final int FILES = 12;

  /** Hadoop's local runner makes no smaller splits than blocks for jobs of the old API. */
  private static final int SMALL_BLOCK_BYTES = 512;

  private static NodeOnHdfs setup;

  @BeforeAll
  static void start() throws Exception {
    setup = new NodeOnHdfs("node-lines", 1, BLOCK_BYTES);
    for (int file = 0; file < FILES; file++) {
      byte[] bytes = bytes(new Random(file));
      setup.hdfs().write("lines/" + file, bytes);
      setup.hdfs().write("small-blocks/" + file, bytes, SMALL_BLOCK_BYTES);
    }
  }

  @AfterAll
  static void stop() throws Exception {
    if (setup != null) {
      setup.close();
    }
  }

  /** Bytes in which ends of lines, marks of byte order and malformed characters are frequent. */
  private static byte[] bytes(Random random) throws IOException {
    String[] parts = {
      "a",
      "b",
      "cc",
      "\u00fc",
      " ",
      "\t",
      "\t",
      "\n",
      "\r",
      "\r\n",
      "\n\r",
      ";",
      "\f",
      "\u2028",
      "\uFEFF",
      "\0",
      "\uD83D\uDE00"
    };
    byte[][] malformed = {{(byte) 0xFF}, {(byte) 0xC3}, {(byte) 0xE2, (byte) 0x82}, {(byte) 0x80}};
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    if (random.nextInt(3) == 0) {
      bytes.write(new byte[] {(byte) 0xEF, (byte) 0xBB, (byte) 0xBF});
    }
    // Some files have lines that are longer than splits and blocks.
    int letters = random.nextInt(3) == 0 ? 1000 : 1;
    int length = 1 + random.nextInt(6000);
    while (bytes.size() < length) {
      int part = random.nextInt(parts.length + 1 + letters);
      if (part < parts.length) {
        bytes.write(parts[part].getBytes(StandardCharsets.UTF_8));
      } else if (part == parts.length) {
        bytes.write(malformed[random.nextInt(malformed.length)]);
      } else {
        bytes.write('x');
      }
    }
    return bytes.toByteArray();
  }

  @ParameterizedTest(name = "splits of {0} bytes, delimiter {1}, lines up to {2}, {3}")
  @CsvSource({"256, , , NODE", "1000, , , ALTERNATING", "1500, CRLF, , NODE", "700, ;, 40, NODE"})
  void areThoseOfHadoop(int splitBytes, String delimiter, Integer lineMax, Maps maps)
      throws Exception {
    compare(
        new NodeJob(setup.folder(), DocumentIndex.WordMapper.class, null, Text.class),
        splitBytes,
        delimiter,
        lineMax,
        maps);
  }

  @Tag("slow")
  @ParameterizedTest(name = "splits of {0} bytes, delimiter {1}, lines up to {2}, {3}")
  @CsvSource({
    "101, , , ALTERNATING",
    "2048, , , NODE",
    "3001, , , ALTERNATING",
    "333, ;, , ALTERNATING",
    "333, ab, , ALTERNATING",
    "97, CRLF, , NODE",
    "1500, ;, , NODE",
    "150, , 40, ALTERNATING",
    "700, , 40, NODE",
    "150, ;, 40, NODE",
  })
  void areThoseOfHadoopInManyMoreSplits(
      int splitBytes, String delimiter, Integer lineMax, Maps maps) throws Exception {
    areThoseOfHadoop(splitBytes, delimiter, lineMax, maps);
    compare(
        new NodeJob(
            setup.folder(), WordCount.WordMapper.class, IntSumReducer.class, IntWritable.class),
        splitBytes,
        delimiter,
        lineMax,
        maps);
  }

  /**
   * The reader of Hadoop's old API drops the last line of a split if it is too long. The node cuts
   * it, as the reader of the new API does, so it must not map a job of the old API with a limit.
   */
  @ParameterizedTest(name = "splits of {0} bytes, delimiter {1}, lines up to {2}")
  @CsvSource({"512, , ", "1500, CRLF, ", "512, , 40", "700, ;, 40"})
  void areThoseOfHadoopsOldApi(int splitBytes, String delimiter, Integer lineMax) throws Exception {
    NodeJob job = oldWords();
    configure(job, splitBytes, delimiter, lineMax);
    List<org.apache.hadoop.fs.Path> input = List.of(setup.hdfs().path("small-blocks"));
    Done stock = job.run(Maps.STOCK, setup.node().socket(), input);
    Done ours = job.run(Maps.NODE, setup.node().socket(), input);
    assertSame(stock, ours);
    if (lineMax == null) {
      assertEquals(Map.of(), ours.onHost());
      assertTrue(ours.counter("MAPS_ON_NODE") >= FILES, "no map ran on the node");
    } else {
      assertEquals(Set.of("LINE_LIMIT"), ours.onHost().keySet());
      assertEquals(0, ours.counter("MAPS_ON_NODE"));
    }
  }

  /** One line in two splits: the first 400 bytes of its second half are a record of the new API. */
  @Test
  void theOldApiDropsALastLineThatIsTooLong() throws Exception {
    byte[] line = ("x".repeat(1000) + "\n").getBytes(StandardCharsets.US_ASCII);
    setup.hdfs().write("long", line, SMALL_BLOCK_BYTES);
    List<org.apache.hadoop.fs.Path> input = List.of(setup.hdfs().path("long"));
    NodeJob old = oldWords();
    configure(old, SMALL_BLOCK_BYTES, null, 400);
    Done stock = old.run(Maps.STOCK, setup.node().socket(), input);
    assertEquals(0, stock.counter(TaskCounter.MAP_INPUT_RECORDS));
    Done ours = old.run(Maps.NODE, setup.node().socket(), input);
    assertSame(stock, ours);
    assertEquals(Map.of("LINE_LIMIT", 2L), ours.onHost());

    NodeJob job =
        new NodeJob(
            setup.folder(), WordCount.WordMapper.class, IntSumReducer.class, IntWritable.class);
    configure(job, SMALL_BLOCK_BYTES, null, 400);
    stock = job.run(Maps.STOCK, setup.node().socket(), input);
    assertEquals(1, stock.counter(TaskCounter.MAP_INPUT_RECORDS));
    ours = job.run(Maps.NODE, setup.node().socket(), input);
    assertSame(stock, ours);
    assertEquals(Map.of(), ours.onHost());
  }

  private static NodeJob oldWords() {
    return new NodeJob(setup.folder(), OldWords.class, IntSumReducer.class, IntWritable.class)
        .with(Keys.NODE_SSDLET, "wordcount");
  }

  /** Word count's mapper in Hadoop's old API. */
  public static final class OldWords extends MapReduceBase
      implements org.apache.hadoop.mapred.Mapper<LongWritable, Text, Text, IntWritable> {
    @Override
    public void map(
        LongWritable offset,
        Text line,
        OutputCollector<Text, IntWritable> output,
        Reporter reporter)
        throws IOException {
      StringTokenizer words = new StringTokenizer(line.toString());
      while (words.hasMoreTokens()) {
        output.collect(new Text(words.nextToken()), new IntWritable(1));
      }
    }
  }

  private static void compare(
      NodeJob job, int splitBytes, String delimiter, Integer lineMax, Maps maps) throws Exception {
    configure(job, splitBytes, delimiter, lineMax);
    List<org.apache.hadoop.fs.Path> input = List.of(setup.hdfs().path("lines"));
    Done stock = job.run(Maps.STOCK, setup.node().socket(), input);
    Done ours = job.run(maps, setup.node().socket(), input);
    assertEquals(Map.of(), ours.onHost());
    assertTrue(ours.counter("MAPS_ON_NODE") >= FILES / 2, "no map ran on the node");
    assertSame(stock, ours);
  }

  private static void configure(NodeJob job, int splitBytes, String delimiter, Integer lineMax) {
    job.with(FileInputFormat.SPLIT_MAXSIZE, splitBytes);
    job.with(FileInputFormat.SPLIT_MINSIZE, splitBytes);
    if (delimiter != null) {
      job.with("textinputformat.record.delimiter", delimiter.replace("CRLF", "\r\n"));
    }
    if (lineMax != null) {
      job.with(LineRecordReader.MAX_LINE_LENGTH, lineMax);
    }
  }

  private static void assertSame(Done stock, Done ours) {
    for (TaskCounter counter :
        List.of(
            TaskCounter.MAP_INPUT_RECORDS,
            TaskCounter.MAP_OUTPUT_RECORDS,
            TaskCounter.MAP_OUTPUT_BYTES,
            TaskCounter.COMBINE_INPUT_RECORDS,
            TaskCounter.COMBINE_OUTPUT_RECORDS)) {
      assertEquals(stock.counter(counter), ours.counter(counter), counter.name());
    }
    assertEquals(stock.digests(), ours.digests());
  }
}
