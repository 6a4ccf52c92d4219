package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.cluster.NodeJob.Done;
import io.merganser.hadoop.cluster.NodeJob.Maps;
import io.merganser.workloads.puma.WordCount;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.hadoop.crypto.key.JavaKeyStoreProvider;
import org.apache.hadoop.fs.CommonConfigurationKeysPublic;
import org.apache.hadoop.hdfs.DFSConfigKeys;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.apache.hadoop.mapreduce.lib.reduce.IntSumReducer;
import org.junit.jupiter.api.Test;

/** Files that only HDFS's own client can read, or may: their maps run on the host. */
class NodeRefusedInputsTest {
  /** Erasure-coded files have cells of this size, and no smaller blocks. */
  private static final int BLOCK_BYTES = 1 << 20;

  private static byte[] text(int bytes) {
    Random random = new Random(bytes);
    StringBuilder text = new StringBuilder();
    while (text.length() < bytes) {
      text.append(Input.word(random)).append(random.nextInt(9) == 0 ? '\n' : ' ');
    }
    return Arrays.copyOf(text.toString().getBytes(StandardCharsets.UTF_8), bytes);
  }

  /** Runs a job with all its maps on the node that may be there, and the same job in stock. */
  private static Done check(NodeOnHdfs setup, String... files) throws Exception {
    NodeJob job =
        new NodeJob(
            setup.folder(), WordCount.WordMapper.class, IntSumReducer.class, IntWritable.class);
    List<org.apache.hadoop.fs.Path> input = new ArrayList<>();
    for (String file : files) {
      input.add(setup.hdfs().path(file));
    }
    Done stock = job.run(Maps.STOCK, setup.node().socket(), input);
    Done ours = job.run(Maps.NODE, setup.node().socket(), input);
    assertEquals(stock.digests(), ours.digests());
    for (TaskCounter counter :
        List.of(
            TaskCounter.MAP_INPUT_RECORDS,
            TaskCounter.MAP_OUTPUT_RECORDS,
            TaskCounter.MAP_OUTPUT_BYTES)) {
      assertEquals(stock.counter(counter), ours.counter(counter), counter.name());
    }
    return ours;
  }

  /**
   * One job over files of three kinds: the plain ones are mapped on the node, the others are not.
   */
  @Test
  void erasureCodedAndEncryptedFilesStayOnTheHost() throws Exception {
    Path keys = ClusterUnderTest.folder("node-keys").resolve("keys.jceks");
    Map<String, String> settings =
        Map.of(
            CommonConfigurationKeysPublic.HADOOP_SECURITY_KEY_PROVIDER_PATH,
            JavaKeyStoreProvider.SCHEME_NAME + "://file" + keys);
    try (NodeOnHdfs setup = new NodeOnHdfs("node-refused-inputs", 3, BLOCK_BYTES, settings)) {
      Hdfs hdfs = setup.hdfs();
      hdfs.makeErasureCoded("coded", "XOR-2-1-1024k");
      hdfs.makeEncrypted("secret");
      int bytes = BLOCK_BYTES * 5 / 2;
      for (String folder : List.of("plain", "coded", "secret")) {
        hdfs.write(folder + "/text", text(bytes));
      }
      LocatedBlock coded =
          hdfs.fs().getClient().getLocatedBlocks("/coded/text", 0).getLocatedBlocks().get(0);
      assertTrue(coded.isStriped(), "the file is not erasure-coded");
      byte[] beginning = Arrays.copyOf(text(bytes), 64);
      assertEquals(3, replicasThatBegin(hdfs, beginning), "the secret file is not encrypted");

      Done done = check(setup, "plain", "coded", "secret");
      assertEquals(3, done.counter("MAPS_ON_NODE"));
      assertEquals(Map.of("ERASURE_CODED", 3L, "ENCRYPTED_INPUT", 3L), done.onHost());
    }
  }

  /** How many replicas of blocks that are not erasure-coded begin with these bytes. */
  private static int replicasThatBegin(Hdfs hdfs, byte[] bytes) throws Exception {
    int found = 0;
    for (int dataNode = 0; dataNode < 3; dataNode++) {
      for (Path replica : hdfs.replicas(dataNode)) {
        byte[] first = Arrays.copyOf(Files.readAllBytes(replica), bytes.length);
        found += Arrays.equals(first, bytes) ? 1 : 0;
      }
    }
    return found;
  }

  /** Block tokens don't need Kerberos, and the node can't check them. */
  @Test
  void blocksThatNeedATokenStayOnTheHost() throws Exception {
    Map<String, String> settings =
        Map.of(DFSConfigKeys.DFS_BLOCK_ACCESS_TOKEN_ENABLE_KEY, Boolean.toString(true));
    try (NodeOnHdfs setup = new NodeOnHdfs("node-block-tokens", 1, BLOCK_BYTES, settings)) {
      setup.hdfs().write("text", text(BLOCK_BYTES * 5 / 2));
      Done done = check(setup, "text");
      assertEquals(0, done.counter("MAPS_ON_NODE"));
      assertEquals(Map.of("SECURE", 3L), done.onHost());
    }
  }
}
