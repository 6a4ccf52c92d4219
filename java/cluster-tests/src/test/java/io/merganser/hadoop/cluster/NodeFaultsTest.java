package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.merganser.hadoop.cluster.NodeJob.Done;
import io.merganser.hadoop.cluster.NodeJob.Maps;
import io.merganser.workloads.puma.WordCount;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.zip.GZIPOutputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.mapreduce.lib.reduce.IntSumReducer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Faults of blocks and nodes: a job with a node writes what it writes without one. */
class NodeFaultsTest {
  private static final long BLOCK_BYTES = 4096;

  private Path folder;
  private Hdfs hdfs;
  private MergeProcess node;
  private NodeJob job;

  @BeforeEach
  void start() throws Exception {
    assumeTrue(MergeProcess.binary().isPresent(), "merganser was not built");
    folder = ClusterUnderTest.folder("node-faults");
    hdfs = new Hdfs(folder.resolve("hdfs"), 2, BLOCK_BYTES);
    // Only the first DataNode has a node.
    node = MergeProcess.startNode(folder.resolve("node.log"), hdfs.dataDir(0));
    job = new NodeJob(folder, WordCount.WordMapper.class, IntSumReducer.class, IntWritable.class);
  }

  @AfterEach
  void stop() throws Exception {
    if (node != null) {
      node.close();
    }
    if (hdfs != null) {
      hdfs.close();
    }
  }

  private static byte[] text(int bytes) {
    Random random = new Random(9);
    StringBuilder text = new StringBuilder();
    while (text.length() < bytes) {
      text.append(Input.word(random)).append(random.nextInt(9) == 0 ? '\n' : ' ');
    }
    return text.toString().getBytes(StandardCharsets.UTF_8);
  }

  private Done check(String file) throws Exception {
    List<org.apache.hadoop.fs.Path> input = List.of(hdfs.path(file));
    Done ours = job.run(Maps.NODE, node.socket(), input);
    assertEquals(job.run(Maps.STOCK, node.socket(), input).digests(), ours.digests());
    return ours;
  }

  @Test
  void aDamagedBlockIsReadElsewhere() throws Exception {
    hdfs.write("text", text(20_000));
    assertEquals(Map.of(), check("text").onHost());
    Path block = hdfs.replicas(0).get(1);
    byte[] bytes = Files.readAllBytes(block);
    bytes[700] ^= 4;
    Files.write(block, bytes);
    Done done = check("text");
    assertEquals(Map.of("DAMAGED_BLOCK", 1L), done.onHost());
    assertTrue(done.counter("MAPS_ON_NODE") >= 3);
  }

  @Test
  void aBlockThatIsGoneIsReadElsewhere() throws Exception {
    hdfs.write("text", text(20_000));
    Files.delete(hdfs.replicas(0).get(0));
    assertEquals(Map.of("NO_LOCAL_REPLICA", 1L), check("text").onHost());
  }

  @Test
  void checksumsThatAreCutOffAreDamage() throws Exception {
    hdfs.write("text", text(4_000));
    Path block = hdfs.replicas(0).get(0);
    Path meta;
    try (var files = Files.list(block.getParent())) {
      meta = files.filter(f -> f.toString().endsWith(".meta")).findFirst().orElseThrow();
    }
    byte[] bytes = Files.readAllBytes(meta);
    Files.write(meta, java.util.Arrays.copyOf(bytes, bytes.length - 1));
    assertEquals(Map.of("DAMAGED_BLOCK", 1L), check("text").onHost());
  }

  @Test
  void blocksOfAnotherDataNodeStayOnTheHost() throws Exception {
    hdfs.writeOn(0, "text/0", text(20_000));
    hdfs.writeOn(1, "text/1", text(20_000));
    Done done = check("text");
    assertEquals(5, done.counter("MAPS_ON_NODE"));
    assertEquals(Map.of("NO_LOCAL_REPLICA", 5L), done.onHost());
  }

  @Test
  void aFileThatGrowsIsRead() throws Exception {
    hdfs.write("text", text(5_000));
    check("text");
    // The last block gets a new generation stamp, and the node must find the new file.
    try (FSDataOutputStream out = hdfs.fs().append(hdfs.path("text"))) {
      out.write(text(5_000));
    }
    assertEquals(Map.of(), check("text").onHost());
  }

  @Test
  void aFileThatIsBeingWrittenStaysOnTheHost() throws Exception {
    try (FSDataOutputStream out = hdfs.fs().create(hdfs.path("text"))) {
      out.write(text(9_000));
      out.hflush();
      Done done = check("text");
      assertEquals(0, done.counter("MAPS_ON_NODE"));
      assertTrue(done.onHost().keySet().equals(java.util.Set.of("UNDER_CONSTRUCTION")));
    }
  }

  @Test
  void aCompressedFileStaysOnTheHost() throws Exception {
    ByteArrayOutputStream packed = new ByteArrayOutputStream();
    try (GZIPOutputStream out = new GZIPOutputStream(packed)) {
      out.write(text(9_000));
    }
    hdfs.write("text.gz", packed.toByteArray());
    assertEquals(Map.of("COMPRESSED_INPUT", 1L), check("text.gz").onHost());
  }

  @Test
  void aKilledNodeLosesNothing() throws Exception {
    hdfs.write("text", text(60_000));
    Thread killer =
        new Thread(
            () -> {
              try {
                Thread.sleep(300);
                node.kill();
              } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
              }
            });
    killer.start();
    check("text");
    killer.join();
    Done done = check("text");
    assertEquals(Map.of("ABSENT", 15L), done.onHost());
  }

  @Test
  void aNodeThatIsStoppedInBetweenIsSilent() throws Exception {
    hdfs.write("text", text(4_000));
    job.with("merganser.node.timeout-ms", 500).with("merganser.node.patience-ms", 0);
    signal("STOP");
    try {
      assertEquals(Map.of("SILENT", 1L), check("text").onHost());
    } finally {
      signal("CONT");
    }
    assertEquals(Map.of(), check("text").onHost());
  }

  private void signal(String name) throws IOException, InterruptedException {
    assertEquals(
        0, new ProcessBuilder("kill", "-" + name, Long.toString(node.pid())).start().waitFor());
  }
}
