package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.Closeable;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** HDFS, and a node on which maps may run next to its first DataNode. */
final class NodeOnHdfs implements Closeable {
  private final Path folder;
  private final Hdfs hdfs;
  private final List<String> options;
  private MergeProcess node;

  /**
   * Starts HDFS and the node. Without the command {@code merganser} the test is skipped, and fails
   * where {@link MergeProcess#binary} says so.
   *
   * @param name of the test's folder
   * @param blockBytes the size of blocks, a multiple of 512
   * @param options more options of the node
   */
  NodeOnHdfs(String name, int dataNodes, long blockBytes, String... options) throws Exception {
    this(name, dataNodes, blockBytes, Map.of(), options);
  }

  /**
   * As above.
   *
   * @param settings of HDFS
   */
  NodeOnHdfs(
      String name, int dataNodes, long blockBytes, Map<String, String> settings, String... options)
      throws Exception {
    this.options = List.of(options);
    assumeTrue(MergeProcess.binary().isPresent(), "merganser was not built");
    folder = ClusterUnderTest.folder(name);
    hdfs = new Hdfs(folder.resolve("hdfs"), dataNodes, blockBytes, settings);
    try {
      startNode();
    } catch (Exception e) {
      hdfs.close();
      throw e;
    }
  }

  /** Starts the node again after it was killed, with another socket. */
  void restartNode() throws Exception {
    node.close();
    startNode();
  }

  private void startNode() throws Exception {
    node = MergeProcess.startNode(folder.resolve("node.log"), hdfs.dataDir(0), options);
  }

  /** The folder for everything that the test writes. */
  Path folder() {
    return folder;
  }

  Hdfs hdfs() {
    return hdfs;
  }

  MergeProcess node() {
    return node;
  }

  @Override
  public void close() throws IOException {
    try {
      node.close();
    } finally {
      hdfs.close();
    }
  }
}
