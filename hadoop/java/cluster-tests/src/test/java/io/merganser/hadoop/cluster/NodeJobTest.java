package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.cluster.NodeJob.Maps;
import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.defer.DeferRules;
import io.merganser.workloads.puma.Distinct;
import io.merganser.workloads.puma.DocumentIndex;
import io.merganser.workloads.puma.WordCount;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.apache.hadoop.mapreduce.lib.map.RegexMapper;
import org.apache.hadoop.mapreduce.lib.reduce.IntSumReducer;
import org.apache.hadoop.util.GenericOptionsParser;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Jobs on YARN whose maps run on the node, and whose reducers fetch what the node has made. The
 * maps are in containers, and know of the node what docs/hadoop/hadoop.md tells jobs to set.
 */
class NodeJobTest {
  private static final long BLOCK_BYTES = 8 << 20;

  private static NodeOnHdfs setup;
  private static ClusterUnderTest cluster;

  @BeforeAll
  static void start() throws Exception {
    setup = new NodeOnHdfs("node-job", 1, BLOCK_BYTES, "--job-ssdlets");
    cluster = new ClusterUnderTest(setup.folder().resolve("cluster"));
    cluster.addNode(Node.Kind.best());
  }

  @AfterAll
  static void stop() throws Exception {
    try {
      if (cluster != null) {
        Leaks.assertNone(cluster);
      }
    } finally {
      if (cluster != null) {
        cluster.close();
      }
      if (setup != null) {
        setup.close();
      }
    }
  }

  /** Words that hardly ever repeat, so that a map of 9 MiB of memory spills often. */
  private static byte[] text() {
    return text("");
  }

  /** Lines of such words, each with a document if one is given. */
  private static byte[] text(String document) {
    Random random = new Random(4);
    StringBuilder text = new StringBuilder();
    for (int line = 0; text.length() < 2 * BLOCK_BYTES; line++) {
      if (!document.isEmpty()) {
        text.append(document).append(line % 7).append('\t');
      }
      do {
        text.append(Long.toString(random.nextLong(), 36)).append(' ');
      } while (random.nextInt(9) > 0);
      text.append('\n');
    }
    return text.toString().getBytes(StandardCharsets.US_ASCII);
  }

  private static NodeJob wordCount() {
    return new NodeJob(
            setup.folder(), WordCount.WordMapper.class, IntSumReducer.class, IntWritable.class)
        .with(Keys.NODE_MEMORY, 9 << 20);
  }

  @Test
  void spillsOfTheNodeAreMergedWhenTheyAreFetched() throws Exception {
    Outcome outcome = sameAsStock("spills", text(), wordCount());
    String counters = Outcome.group(outcome.counters(), DeferRules.COUNTERS);
    assertTrue(outcome.counter(DeferRules.COUNTERS, DeferRules.DEFERRED) > 0, counters);
  }

  @Tag("slow")
  @Test
  void spillsOfTheNodeAreMergedByTheTaskIfTheJobCompresses() throws Exception {
    NodeJob job = wordCount().with(MRJobConfig.MAP_OUTPUT_COMPRESS, true);
    Outcome outcome = sameAsStock("compressed", text(), job);
    String counters = Outcome.group(outcome.counters(), DeferRules.COUNTERS);
    assertTrue(outcome.counter(DeferRules.COUNTERS, "MAPS_STOCK_COMPRESSED") > 0, counters);
    assertTrue(
        outcome.counter(TaskCounter.MAP_OUTPUT_MATERIALIZED_BYTES)
            < outcome.counter(TaskCounter.MAP_OUTPUT_BYTES),
        "not compressed");
  }

  /** The values are texts, the combiner drops equal ones, and each map leaves several spills. */
  @Test
  void anInvertedIndexIsMergedWhenItIsFetched() throws Exception {
    NodeJob job =
        new NodeJob(setup.folder(), DocumentIndex.WordMapper.class, Distinct.class, Text.class)
            .with(Keys.NODE_MEMORY, 9 << 20);
    Outcome outcome = sameAsStock("documents", text("doc"), job);
    String counters = Outcome.group(outcome.counters(), DeferRules.COUNTERS);
    long deferred = outcome.counter(DeferRules.COUNTERS, DeferRules.DEFERRED);
    assertEquals(outcome.maps().size(), deferred, counters);
    assertTrue(outcome.counter(DeferRules.COUNTERS, DeferRules.BYTES_NOT_REWRITTEN) > 0, counters);
  }

  @Test
  void aSearchByTheOldApi() throws Exception {
    NodeJob job =
        new NodeJob(
                setup.folder(),
                org.apache.hadoop.mapred.lib.RegexMapper.class,
                org.apache.hadoop.mapred.lib.LongSumReducer.class,
                LongWritable.class)
            .with(RegexMapper.PATTERN, "ab");
    Outcome outcome = sameAsStock("search", text(), job);
    assertTrue(outcome.counter(TaskCounter.MAP_OUTPUT_RECORDS) > 0);
  }

  /** As docs/hadoop/hadoop-node.md says: {@code -files words.wasm}, which is on no class path. */
  @Test
  void aProgramThatTheJobBrings() throws Exception {
    Path words = setup.folder().resolve("words.wasm");
    try (InputStream in = NodeJobTest.class.getResourceAsStream("/first-words.wasm")) {
      Files.copy(in, words);
    }
    JobConf conf = cluster.stockJob();
    new GenericOptionsParser(
        conf,
        new String[] {"-files", words.toString(), "-D", Keys.NODE_SSDLET + "=wasm:words.wasm"});
    NodeJob job =
        new NodeJob(setup.folder(), FirstWords.Ints.class, IntSumReducer.class, IntWritable.class)
            .with(Keys.NODE_MEMORY, 32 << 20);
    sameAsStock("program", text(), job, conf);
  }

  /** Each mapper that the node knows, on text with every kind of mistake. */
  @Tag("slow")
  @ParameterizedTest
  @MethodSource("io.merganser.hadoop.cluster.NodeProgramsTest#programs")
  void eachProgram(NodeProgramsTest.Program program) throws Exception {
    NodeJob job =
        new NodeJob(setup.folder(), program.mapper(), program.combiner(), program.value())
            .with(RegexMapper.PATTERN, "aa");
    sameAsStock("each", NodeProgramsTest.input(program.input()), job);
  }

  @Tag("slow")
  @Test
  void aNodeThatIsKilledInTheMiddleLosesNothing() throws Exception {
    setup.hdfs().write("killed", text());
    List<org.apache.hadoop.fs.Path> input = List.of(setup.hdfs().path("killed"));
    Path output = setup.folder().resolve("killed");
    NodeJob words = wordCount();
    MergeProcess node = setup.node();
    Job job = words.prepare(cluster.stockJob(), Maps.NODE, node.socket(), input, output);
    Outcome outcome;
    try (AtFirstMap killer = new AtFirstMap(node, node::kill)) {
      outcome = Outcome.of(job);
      assertTrue(killer.happened(), "no map was seen on the node");
    } finally {
      setup.restartNode();
    }
    assertTrue(outcome.succeeded(), outcome::why);
    Map<String, Long> reasons = NodeJob.onHost(outcome.counters());
    assertTrue(reasons.containsKey("DIED"), reasons.toString());
    assertTrue(Set.of("DIED", "ABSENT").containsAll(reasons.keySet()), reasons.toString());
    long onHost = reasons.values().stream().mapToLong(Long::longValue).sum();
    long onNode = outcome.counter(DeferRules.COUNTERS, "MAPS_ON_NODE");
    assertEquals(outcome.maps().size(), onHost + onNode);
    // No attempt failed: the same one went on by itself.
    assertEquals(outcome.maps().size() + outcome.reduces().size(), outcome.attempts().size());
    assertEquals(words.run(Maps.STOCK, node.socket(), input).digests(), Output.digests(output));
  }

  private static Outcome sameAsStock(String name, byte[] text, NodeJob job) throws Exception {
    return sameAsStock(name, text, job, cluster.stockJob());
  }

  /** Runs a job with all maps on the node, and the same job with none. */
  private static Outcome sameAsStock(String name, byte[] text, NodeJob shape, JobConf conf)
      throws Exception {
    setup.hdfs().write(name, text);
    List<org.apache.hadoop.fs.Path> input = List.of(setup.hdfs().path(name));
    Path output = setup.folder().resolve(name);
    ClusterUnderTest.delete(output);
    Job job = shape.prepare(conf, Maps.NODE, setup.node().socket(), input, output);
    Outcome outcome = Outcome.of(job);
    assertTrue(outcome.succeeded(), outcome::why);
    String counters = Outcome.group(outcome.counters(), DeferRules.COUNTERS);
    long maps = outcome.maps().size();
    assertEquals(maps, outcome.counter(DeferRules.COUNTERS, "MAPS_ON_NODE"), counters);
    assertEquals(0, outcome.failedFetches());
    NodeJob.Done stock = shape.run(Maps.STOCK, setup.node().socket(), input);
    assertEquals(stock.digests(), Output.digests(output));
    for (TaskCounter counter :
        List.of(
            TaskCounter.MAP_INPUT_RECORDS,
            TaskCounter.MAP_OUTPUT_RECORDS,
            TaskCounter.MAP_OUTPUT_BYTES)) {
      assertEquals(stock.counter(counter), outcome.counter(counter), counter.name());
    }
    // The tasks read the ends of lines, and little else.
    long read = outcome.counter("org.apache.hadoop.mapreduce.FileSystemCounter", "HDFS_BYTES_READ");
    assertTrue(read < maps * (64 << 10), read + " bytes were read by " + maps + " tasks");
    assertTrue(outcome.counter(DeferRules.COUNTERS, "NODE_BYTES_READ") > text.length);
    return outcome;
  }
}
