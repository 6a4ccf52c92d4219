package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.merganser.hadoop.cluster.NodeJob.Done;
import io.merganser.hadoop.cluster.NodeJob.Maps;
import io.merganser.hadoop.config.Keys;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.apache.hadoop.mapreduce.lib.reduce.IntSumReducer;
import org.apache.hadoop.mapreduce.lib.reduce.LongSumReducer;
import org.junit.jupiter.api.Test;

/** Jobs that bring their program in WebAssembly write what their mapper in Java writes. */
class NodeUploadsTest {
  private static final int MAPS = 4;
  private static final int BLOCK_BYTES = 16 << 10;
  private static final String ALLOWED = "--job-ssdlets";

  /** Lines that end in every way, with bytes that are no UTF-8. */
  private static byte[] text() {
    Random random = new Random(17);
    String[] pieces = {"a", "b", "cd", " ", " ", "\t", "\n", "\r\n", "\r", "\u00e4"};
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    while (bytes.size() < MAPS * BLOCK_BYTES) {
      bytes.writeBytes(pieces[random.nextInt(pieces.length)].getBytes(StandardCharsets.UTF_8));
      if (random.nextInt(300) == 0) {
        bytes.write(0x80 + random.nextInt(128));
      }
    }
    // Maps alternate by their place in units of their length, so all have the same.
    return Arrays.copyOf(bytes.toByteArray(), MAPS * BLOCK_BYTES);
  }

  private static Done check(
      NodeOnHdfs setup,
      Class<?> mapper,
      Class<?> combiner,
      Class<? extends Writable> value,
      String module)
      throws Exception {
    NodeJob job =
        new NodeJob(setup.folder(), mapper, combiner, value)
            .with(Keys.NODE_SSDLET, module)
            .with(Keys.NODE_MEMORY, 32 << 20);
    List<org.apache.hadoop.fs.Path> input = List.of(setup.hdfs().path("text"));
    Done stock = job.run(Maps.STOCK, setup.node().socket(), input);
    long alternating = 0;
    for (Maps maps : List.of(Maps.ALTERNATING, Maps.NODE)) {
      Done ours = job.run(maps, setup.node().socket(), input);
      assertEquals(stock.digests(), ours.digests());
      for (TaskCounter counter :
          List.of(
              TaskCounter.MAP_INPUT_RECORDS,
              TaskCounter.MAP_OUTPUT_RECORDS,
              TaskCounter.MAP_OUTPUT_BYTES,
              TaskCounter.COMBINE_INPUT_RECORDS,
              TaskCounter.REDUCE_INPUT_RECORDS)) {
        assertEquals(stock.counter(counter), ours.counter(counter), counter.name());
      }
      if (maps == Maps.NODE) {
        // Every second map was on the node, or none where the node can run none.
        assertEquals(ours.counter("MAPS_ON_NODE") / 2, alternating);
        return ours;
      }
      alternating = ours.counter("MAPS_ON_NODE");
    }
    throw new AssertionError("the last one returns");
  }

  @Test
  void aJobsProgramGivesTheSameAsItsMapper() throws Exception {
    try (NodeOnHdfs setup = new NodeOnHdfs("node-uploads", 1, BLOCK_BYTES, ALLOWED)) {
      setup.hdfs().write("text", text());
      var ints = FirstWords.Ints.class;
      var longs = FirstWords.Longs.class;
      String module = FirstWords.MODULE;
      for (Done done :
          List.of(
              check(setup, ints, IntSumReducer.class, IntWritable.class, module),
              check(setup, ints, null, IntWritable.class, module),
              check(setup, longs, LongSumReducer.class, LongWritable.class, module))) {
        assertEquals(Map.of(), done.onHost());
        assertEquals(MAPS, done.counter("MAPS_ON_NODE"));
      }
    }
  }

  @Test
  void whatIsNoProgramOrFailsLeavesTheMapsToTheirMapper() throws Exception {
    try (NodeOnHdfs setup = new NodeOnHdfs("node-uploads-bad", 1, 4 << 20, ALLOWED)) {
      // A line that the memory of the guest has no room for.
      byte[] line = "x".repeat(2_500_000).getBytes(StandardCharsets.UTF_8);
      setup.hdfs().write("text", line);
      var ints = FirstWords.Ints.class;
      Done done = check(setup, ints, IntSumReducer.class, IntWritable.class, FirstWords.MODULE);
      assertEquals(Map.of("PROGRAM_FAILED", 1L), done.onHost());

      Path script = Files.write(setup.folder().resolve("not.wasm"), new byte[] {'#', '!'});
      done = check(setup, ints, IntSumReducer.class, IntWritable.class, "wasm:" + script);
      assertEquals(Map.of("PROGRAM", 1L), done.onHost());
      done = check(setup, ints, IntSumReducer.class, IntWritable.class, "wasm:gone.wasm");
      assertEquals(Map.of("PROGRAM_FILE", 1L), done.onHost());
      // Its numbers are no texts.
      var mapper = io.merganser.workloads.puma.TermVector.DocumentMapper.class;
      done = check(setup, mapper, null, org.apache.hadoop.io.Text.class, FirstWords.MODULE);
      assertEquals(Map.of("PROGRAM", 1L), done.onHost());
    }
  }

  @Test
  void aNodeTakesNoProgramsUnlessItsOperatorSaysSo() throws Exception {
    try (NodeOnHdfs setup = new NodeOnHdfs("node-no-uploads", 1, BLOCK_BYTES)) {
      setup.hdfs().write("text", text());
      Done done = check(setup, FirstWords.Ints.class, null, IntWritable.class, FirstWords.MODULE);
      assertEquals(Map.of("NO_UPLOADS", (long) MAPS), done.onHost());
    }
  }
}
