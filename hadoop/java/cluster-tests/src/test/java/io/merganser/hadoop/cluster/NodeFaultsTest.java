package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.cluster.NodeJob.Done;
import io.merganser.hadoop.cluster.NodeJob.Maps;
import io.merganser.hadoop.config.Keys;
import io.merganser.workloads.puma.WordCount;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.zip.GZIPOutputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.mapreduce.lib.reduce.IntSumReducer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Faults of blocks and nodes: a job with a node writes what it writes without one. */
class NodeFaultsTest {
  private static final long BLOCK_BYTES = 4096;

  /** Where a {@code .meta} file says what kind its checksums are of. */
  private static final int KIND_OF_CHECKSUMS = 2;

  /** Only the first DataNode has a node. */
  private NodeOnHdfs setup;

  private NodeJob job;

  @BeforeEach
  void start() throws Exception {
    setup = new NodeOnHdfs("node-faults", 2, BLOCK_BYTES);
    job =
        new NodeJob(
            setup.folder(), WordCount.WordMapper.class, IntSumReducer.class, IntWritable.class);
  }

  @AfterEach
  void stop() throws Exception {
    if (setup != null) {
      setup.close();
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
    List<org.apache.hadoop.fs.Path> input = List.of(setup.hdfs().path(file));
    Done ours = job.run(Maps.NODE, setup.node().socket(), input);
    assertEquals(job.run(Maps.STOCK, setup.node().socket(), input).digests(), ours.digests());
    return ours;
  }

  @Test
  void aDamagedBlockIsReadElsewhere() throws Exception {
    setup.hdfs().write("text", text(20_000));
    assertEquals(Map.of(), check("text").onHost());
    Path block = setup.hdfs().replicas(0).get(1);
    byte[] bytes = Files.readAllBytes(block);
    bytes[700] ^= 4;
    Files.write(block, bytes);
    Done done = check("text");
    assertEquals(Map.of("DAMAGED_BLOCK", 1L), done.onHost());
    assertTrue(done.counter("MAPS_ON_NODE") >= 3);
  }

  @Test
  void aBlockThatIsGoneIsReadElsewhere() throws Exception {
    setup.hdfs().write("text", text(20_000));
    Files.delete(setup.hdfs().replicas(0).get(0));
    assertEquals(Map.of("NO_LOCAL_REPLICA", 1L), check("text").onHost());
  }

  @Test
  void checksumsThatAreCutOffAreDamage() throws Exception {
    setup.hdfs().write("text", text(4_000));
    Path meta = metaOf(setup.hdfs().replicas(0).get(0));
    byte[] bytes = Files.readAllBytes(meta);
    Files.write(meta, Arrays.copyOf(bytes, bytes.length - 1));
    assertEquals(Map.of("DAMAGED_BLOCK", 1L), check("text").onHost());
  }

  /** The file of a replica's checksums. */
  private static Path metaOf(Path replica) throws IOException {
    String prefix = replica.getFileName() + "_";
    try (var files = Files.list(replica.getParent())) {
      return files
          .filter(f -> f.getFileName().toString().startsWith(prefix))
          .filter(f -> f.toString().endsWith(".meta"))
          .findFirst()
          .orElseThrow();
    }
  }

  /** As a replica that missed an append: its DataNode was down. */
  @Test
  void aReplicaOfAnotherGenerationIsReadElsewhere() throws Exception {
    setup.hdfs().write("text", text(20_000));
    Path replica = setup.hdfs().replicas(0).get(1);
    Path meta = metaOf(replica);
    Files.move(meta, meta.resolveSibling(replica.getFileName() + "_999999.meta"));
    assertEquals(Map.of("GENERATION", 1L), check("text").onHost());
  }

  /** Stock Hadoop reads no more of a replica than its DataNode knows, and the node none of it. */
  @Test
  void aReplicaOfAnotherLengthStaysOnTheHost() throws Exception {
    setup.hdfs().write("text", text(20_000));
    Path replica = setup.hdfs().replicas(0).get(1);
    Files.write(replica, new byte[] {'x'}, StandardOpenOption.APPEND);
    assertEquals(Map.of("LENGTH", 1L), check("text").onHost());
  }

  @Test
  void checksumsOfAnUnknownKindAreReadElsewhere() throws Exception {
    setup.hdfs().write("text", text(20_000));
    Path meta = metaOf(setup.hdfs().replicas(0).get(1));
    byte[] bytes = Files.readAllBytes(meta);
    bytes[KIND_OF_CHECKSUMS] = 9;
    Files.write(meta, bytes);
    assertEquals(Map.of("CHECKSUM_KIND", 1L), check("text").onHost());
  }

  @Test
  void mapsThatNeedMoreMemoryThanTheyMayHaveStayOnTheHost() throws Exception {
    byte[] text = Arrays.copyOf(text(20_000), 4 << 20);
    Arrays.fill(text, 20_000, text.length - 1, (byte) 'y');
    text[text.length - 1] = '\n';
    setup.hdfs().write("text", text, text.length);
    job.with(Keys.NODE_MEMORY, 1 << 20);
    assertEquals(Map.of("MEMORY", 1L), check("text").onHost());
    // Enough for the map, and not for its longest line.
    job.with(Keys.NODE_MEMORY, 16 << 20);
    assertEquals(Map.of("LONG_RECORD", 1L), check("text").onHost());
  }

  @Test
  void blocksOfAnotherDataNodeStayOnTheHost() throws Exception {
    setup.hdfs().writeOn(0, "text/0", text(20_000));
    setup.hdfs().writeOn(1, "text/1", text(20_000));
    Done done = check("text");
    assertEquals(5, done.counter("MAPS_ON_NODE"));
    assertEquals(Map.of("NO_LOCAL_REPLICA", 5L), done.onHost());
  }

  @Test
  void aFileThatGrowsIsRead() throws Exception {
    setup.hdfs().write("text", text(5_000));
    check("text");
    // The last block gets a new generation stamp, and the node must find the new file.
    try (FSDataOutputStream out = setup.hdfs().fs().append(setup.hdfs().path("text"))) {
      out.write(text(5_000));
    }
    assertEquals(Map.of(), check("text").onHost());
  }

  @Test
  void aFileThatIsBeingWrittenStaysOnTheHost() throws Exception {
    try (FSDataOutputStream out = setup.hdfs().fs().create(setup.hdfs().path("text"))) {
      out.write(text(9_000));
      out.hflush();
      Done done = check("text");
      assertEquals(0, done.counter("MAPS_ON_NODE"));
      assertTrue(done.onHost().keySet().equals(Set.of("UNDER_CONSTRUCTION")));
    }
  }

  @Test
  void aCompressedFileStaysOnTheHost() throws Exception {
    ByteArrayOutputStream packed = new ByteArrayOutputStream();
    try (GZIPOutputStream out = new GZIPOutputStream(packed)) {
      out.write(text(9_000));
    }
    setup.hdfs().write("text.gz", packed.toByteArray());
    assertEquals(Map.of("COMPRESSED_INPUT", 1L), check("text.gz").onHost());
  }

  @Test
  void aKilledNodeLosesNothing() throws Exception {
    writeLong("text");
    Done killed = checkAndKill("text");
    // A job may end before the killer has seen a map.
    for (int again = 0; again < 4 && killed.onHost().isEmpty(); again++) {
      setup.node().kill();
      setup.restartNode();
      killed = checkAndKill("text");
    }
    assertFalse(killed.onHost().isEmpty(), "the node was never killed while maps ran");
    assertTrue(
        Set.of("DIED", "ABSENT").containsAll(killed.onHost().keySet()), killed.onHost().toString());
    assertEquals(Map.of("ABSENT", 8L), check("text").onHost());
  }

  /** Runs a job, and kills the node as soon as a map runs there. */
  private Done checkAndKill(String file) throws Exception {
    MergeProcess node = setup.node();
    return checkAnd(file, node::kill).done();
  }

  /** A job, and whether the fault began while one of its maps ran. */
  private record Faulted(Done done, boolean began) {}

  /** Runs a job, and begins a fault as soon as a map runs on the node. */
  private Faulted checkAnd(String file, AtFirstMap.Fault fault) throws Exception {
    try (AtFirstMap watcher = new AtFirstMap(setup.node(), fault)) {
      Done done = check(file);
      return new Faulted(done, watcher.happened());
    }
  }

  /** Writes a file of eight blocks that take a while to map, on both DataNodes. */
  private void writeLong(String name) throws Exception {
    int maps = 8;
    int blockBytes = 1 << 20;
    byte[] text = Arrays.copyOf(text(maps * blockBytes), maps * blockBytes);
    setup.hdfs().write(name, text, blockBytes);
    setup.hdfs().waitForReplicas(name, 2);
  }

  @Test
  @Tag("slow")
  void aDataNodeThatRestartsUnderAMapLosesNothing() throws Exception {
    writeLong("text");
    for (int again = 0; ; again++) {
      Faulted faulted = checkAnd("text", () -> setup.hdfs().restart(0));
      // The node reads files, so it does not need the DataNode. The replicas that the DataNode
      // has not reported yet are read by tasks, if the NameNode names only the other DataNode.
      Set<String> reasons = faulted.done().onHost().keySet();
      assertTrue(Set.of("NO_LOCAL_REPLICA").containsAll(reasons), reasons.toString());
      if (faulted.began()) {
        break;
      }
      assertTrue(again < 4, "no restart of the DataNode began while maps ran");
    }
    setup.hdfs().waitForReplicas("text", 2);
    assertEquals(Map.of(), check("text").onHost());
  }

  /** Replicas are copied before the job, and the maps lose those next to the node. */
  @Test
  @Tag("slow")
  void aReplicaThatIsMovedUnderAMapLosesNothing() throws Exception {
    boolean moved = false;
    for (int again = 0; again < 4 && !moved; again++) {
      String name = "text" + again;
      writeLong(name);
      Done done = checkAnd(name, () -> setup.hdfs().drop(name)).done();
      Set<String> reasons = done.onHost().keySet();
      assertTrue(Set.of("NO_LOCAL_REPLICA").containsAll(reasons), reasons.toString());
      // The first maps still found their replicas on the node, and later ones didn't.
      moved = !reasons.isEmpty() && done.counter("MAPS_ON_NODE") > 0;
    }
    assertTrue(moved, "no replica went away between the maps of a job");
  }

  @Test
  void aNodeThatIsStoppedInBetweenIsSilent() throws Exception {
    setup.hdfs().write("text", text(4_000));
    job.with("merganser.node.timeout-ms", 500).with("merganser.node.patience-ms", 0);
    signal("STOP");
    try {
      assertEquals(Map.of("SILENT", 1L), check("text").onHost());
    } finally {
      signal("CONT");
    }
    job.with("merganser.node.timeout-ms", 60_000).with("merganser.node.patience-ms", 5_000);
    assertEquals(Map.of(), check("text").onHost());
  }

  private void signal(String name) throws IOException, InterruptedException {
    String pid = Long.toString(setup.node().pid());
    assertEquals(0, new ProcessBuilder("kill", "-" + name, pid).start().waitFor());
  }
}
