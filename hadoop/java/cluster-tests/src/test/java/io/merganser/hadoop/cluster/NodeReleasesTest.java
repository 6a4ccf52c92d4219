package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.merganser.hadoop.cluster.NodeJob.Done;
import io.merganser.hadoop.cluster.NodeJob.Maps;
import io.merganser.hadoop.cluster.OtherRelease.Meeting;
import io.merganser.hadoop.config.Keys;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.IntFunction;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.mapreduce.lib.reduce.IntSumReducer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tasks and nodes of several releases in one job, whose output is that of stock Hadoop. */
class NodeReleasesTest {
  private static final int MAPS = 6;
  private static final int BLOCK_BYTES = 4096;

  private NodeOnHdfs setup;

  @BeforeEach
  void start() throws Exception {
    setup = new NodeOnHdfs("node-releases", 1, BLOCK_BYTES, "--job-ssdlets");
    Random random = new Random(5);
    StringBuilder text = new StringBuilder();
    while (text.length() < MAPS * BLOCK_BYTES) {
      text.append(Input.word(random)).append(random.nextInt(9) == 0 ? '\n' : ' ');
    }
    text.setLength(MAPS * BLOCK_BYTES);
    setup.hdfs().write("text", text.toString().getBytes(StandardCharsets.UTF_8));
  }

  @AfterEach
  void stop() throws Exception {
    if (setup != null) {
      setup.close();
    }
  }

  /** Runs a job, and checks its output; its maps meet nodes as it is given. */
  private Done check(NodeJob job, IntFunction<Meeting> meetings) throws Exception {
    List<Path> input = List.of(setup.hdfs().path("text"));
    try (OtherRelease relay = new OtherRelease(meetings)) {
      Done ours = job.run(Maps.NODE, relay.socket(), input);
      assertEquals(job.run(Maps.STOCK, relay.socket(), input).digests(), ours.digests());
      return ours;
    }
  }

  private NodeJob job() {
    return new NodeJob(
        setup.folder(), FirstWords.Ints.class, IntSumReducer.class, IntWritable.class);
  }

  /** As where the jar of some machines is newer than their node. */
  @ParameterizedTest
  @ValueSource(strings = {"wordcount", FirstWords.MODULE})
  void twoReleasesOfThePluginInOneJob(String program) throws Exception {
    NodeJob job = job().with(Keys.NODE_SSDLET, FirstWords.MODULE);
    if (!program.equals(FirstWords.MODULE)) {
      job =
          new NodeJob(
              setup.folder(),
              io.merganser.workloads.puma.WordCount.WordMapper.class,
              IntSumReducer.class,
              IntWritable.class);
    }
    var node = setup.node().socket();
    Done done = check(job, number -> new Meeting(node, number % 2 == 0));
    assertEquals(MAPS / 2, done.counter("MAPS_ON_NODE"));
    assertEquals(Map.of("PROTOCOL", (long) MAPS / 2), done.onHost());
  }

  /**
   * The node of a machine is replaced while a job runs: by one that knows more, or by one that
   * knows less.
   */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aNodeIsReplacedUnderARunningJob(boolean upgrade) throws Exception {
    int before = 2;
    Done done =
        check(
            job().with(Keys.NODE_SSDLET, FirstWords.MODULE),
            number -> {
              if (number == before) {
                replaceNode();
              }
              return new Meeting(setup.node().socket(), upgrade == number >= before);
            });
    int understood = upgrade ? MAPS - before : before;
    assertEquals(understood, done.counter("MAPS_ON_NODE"));
    assertEquals(Map.of("PROTOCOL", (long) MAPS - understood), done.onHost());
  }

  private void replaceNode() {
    try {
      setup.restartNode();
    } catch (Exception e) {
      throw new AssertionError("the node doesn't start again", e);
    }
  }

  /** A node that was stopped for its upgrade is absent, and the next one maps what follows. */
  @Test
  void mapsBetweenTwoReleasesRunInTheirTasks() throws Exception {
    int gap = 2;
    Done done =
        check(
            job().with(Keys.NODE_SSDLET, FirstWords.MODULE),
            number -> {
              if (number == gap) {
                killNode();
              } else if (number == gap + 1) {
                replaceNode();
              }
              return new Meeting(setup.node().socket(), true);
            });
    assertEquals(MAPS - 1, done.counter("MAPS_ON_NODE"));
    assertEquals(Map.of("DIED", 1L), done.onHost());
  }

  private void killNode() {
    try {
      setup.node().kill();
    } catch (InterruptedException e) {
      throw new AssertionError("interrupted", e);
    }
  }
}
