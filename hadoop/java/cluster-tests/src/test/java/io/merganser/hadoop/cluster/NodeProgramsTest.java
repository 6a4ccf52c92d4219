package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.merganser.hadoop.cluster.NodeJob.Done;
import io.merganser.hadoop.cluster.NodeJob.Maps;
import io.merganser.workloads.puma.Distinct;
import io.merganser.workloads.puma.DocumentIndex;
import io.merganser.workloads.puma.HistogramMovies;
import io.merganser.workloads.puma.HistogramRatings;
import io.merganser.workloads.puma.RankedInvertedIndex;
import io.merganser.workloads.puma.SequenceCount;
import io.merganser.workloads.puma.TermVector;
import io.merganser.workloads.puma.WordCount;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.hadoop.examples.WordCount.TokenizerMapper;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.apache.hadoop.mapreduce.lib.map.RegexMapper;
import org.apache.hadoop.mapreduce.lib.map.TokenCounterMapper;
import org.apache.hadoop.mapreduce.lib.reduce.IntSumReducer;
import org.apache.hadoop.mapreduce.lib.reduce.LongSumReducer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Each known mapper gives the same on the node as in Java, on text with every kind of mistake. */
class NodeProgramsTest {
  private static final long BLOCK_BYTES = 16 << 10;

  private static NodeOnHdfs setup;

  @BeforeAll
  static void start() throws Exception {
    setup = new NodeOnHdfs("node-programs", 1, BLOCK_BYTES);
    for (String input : List.of("documents", "movies", "sequences")) {
      setup.hdfs().write(input, input(input));
    }
  }

  /** The input of this name. */
  static byte[] input(String name) throws IOException {
    return switch (name) {
      case "documents" -> text("\t ", " \t\f|:");
      case "movies" -> text(":,_", "12345_,:0");
      case "sequences" -> text("|\t", "|0123456789");
      default -> throw new IllegalArgumentException("no input is named " + name);
    };
  }

  @AfterAll
  static void stop() throws Exception {
    if (setup != null) {
      setup.close();
    }
  }

  /** Lines of short words, in which some characters are frequent and others not rare. */
  private static byte[] text(String frequent, String sometimes) throws IOException {
    Random random = new Random(frequent.hashCode());
    String others = "abcdefgh\u00e4\u4e2d";
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    while (bytes.size() < 60_000) {
      for (int i = random.nextInt(60); i > 0; i--) {
        String from =
            switch (random.nextInt(8)) {
              case 0, 1 -> frequent;
              case 2 -> sometimes;
              default -> others;
            };
        int at = random.nextInt(from.length());
        bytes.write(from.substring(at, at + 1).getBytes(StandardCharsets.UTF_8));
        if (random.nextInt(300) == 0) {
          bytes.write(0x80 + random.nextInt(128));
        }
      }
      bytes.write('\n');
    }
    return bytes.toByteArray();
  }

  /** A mapper that the node knows, with a combiner or without, and its input. */
  record Program(
      String input, Class<?> mapper, Class<?> combiner, Class<? extends Writable> value) {
    @Override
    public String toString() {
      return mapper.getName() + (combiner == null ? "" : ", " + combiner.getSimpleName());
    }
  }

  static List<Program> programs() {
    var intSum = IntSumReducer.class;
    var longSum = LongSumReducer.class;
    var ints = IntWritable.class;
    return List.of(
        new Program("documents", WordCount.WordMapper.class, intSum, ints),
        new Program("documents", WordCount.WordMapper.class, null, ints),
        new Program("documents", TokenizerMapper.class, intSum, ints),
        new Program("documents", TokenCounterMapper.class, intSum, ints),
        new Program("documents", TermVector.DocumentMapper.class, null, Text.class),
        new Program("documents", DocumentIndex.WordMapper.class, Distinct.class, Text.class),
        new Program("documents", DocumentIndex.WordMapper.class, null, Text.class),
        new Program("documents", SequenceCount.TripleMapper.class, intSum, ints),
        new Program("movies", HistogramMovies.BinMapper.class, intSum, ints),
        new Program("movies", HistogramRatings.RatingMapper.class, intSum, ints),
        new Program("movies", HistogramRatings.RatingMapper.class, null, ints),
        new Program("sequences", RankedInvertedIndex.DocumentMapper.class, null, Text.class),
        new Program("documents", RegexMapper.class, longSum, LongWritable.class),
        new Program(
            "documents",
            org.apache.hadoop.mapred.lib.RegexMapper.class,
            org.apache.hadoop.mapred.lib.LongSumReducer.class,
            LongWritable.class));
  }

  @ParameterizedTest
  @MethodSource("programs")
  void givesTheSameAsItsMapper(Program program) throws Exception {
    NodeJob job =
        new NodeJob(setup.folder(), program.mapper(), program.combiner(), program.value());
    job.with(RegexMapper.PATTERN, "aa");
    List<org.apache.hadoop.fs.Path> input = List.of(setup.hdfs().path(program.input()));
    Done stock = job.run(Maps.STOCK, setup.node().socket(), input);
    Done ours = job.run(Maps.NODE, setup.node().socket(), input);
    assertEquals(Map.of(), ours.onHost());
    assertEquals(4, ours.counter("MAPS_ON_NODE"));
    for (TaskCounter counter :
        List.of(
            TaskCounter.MAP_INPUT_RECORDS,
            TaskCounter.MAP_OUTPUT_RECORDS,
            TaskCounter.MAP_OUTPUT_BYTES,
            TaskCounter.COMBINE_INPUT_RECORDS,
            TaskCounter.COMBINE_OUTPUT_RECORDS,
            TaskCounter.REDUCE_INPUT_RECORDS)) {
      assertEquals(stock.counter(counter), ours.counter(counter), counter.name());
    }
    assertEquals(stock.digests(), ours.digests());
  }
}
