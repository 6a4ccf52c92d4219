package io.merganser.hadoop.cluster;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DFSConfigKeys;
import org.apache.hadoop.hdfs.DFSTestUtil;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.protocol.Block;
import org.apache.hadoop.hdfs.server.datanode.DataNode;

/** HDFS in this JVM, with small blocks, whose files tests write, read and damage. */
final class Hdfs implements AutoCloseable {
  private static final int BUFFER_BYTES = 4096;

  private final MiniDFSCluster cluster;

  /** Of the DataNodes in the order in which they first started. */
  private final List<String> uuids;

  /**
   * Starts a NameNode and DataNodes with one folder each.
   *
   * @param blockBytes the size of blocks, a multiple of 512
   * @param settings further settings of all of them
   */
  Hdfs(Path folder, int dataNodes, long blockBytes, Map<String, String> settings)
      throws IOException {
    Configuration conf = new Configuration();
    settings.forEach(conf::set);
    conf.setLong(DFSConfigKeys.DFS_NAMENODE_MIN_BLOCK_SIZE_KEY, 512);
    conf.setLong(DFSConfigKeys.DFS_BLOCK_SIZE_KEY, blockBytes);
    conf.setInt(DFSConfigKeys.DFS_REPLICATION_KEY, dataNodes);
    cluster =
        new MiniDFSCluster.Builder(conf, folder.toFile())
            .numDataNodes(dataNodes)
            .storagesPerDatanode(1)
            .build();
    cluster.waitActive();
    uuids = cluster.getDataNodes().stream().map(DataNode::getDatanodeUuid).toList();
  }

  /** Where the cluster lists a DataNode now: one that was restarted is the last of its list. */
  private int place(int dataNode) {
    List<String> now = cluster.getDataNodes().stream().map(DataNode::getDatanodeUuid).toList();
    return now.indexOf(uuids.get(dataNode));
  }

  /** Makes a folder whose files are erasure-coded. */
  void makeErasureCoded(String folder, String policy) throws IOException {
    fs().enableErasureCodingPolicy(policy);
    fs().mkdirs(path(folder));
    fs().setErasureCodingPolicy(path(folder), policy);
  }

  /** Makes a folder whose files are encrypted. The settings must name a provider of keys. */
  void makeEncrypted(String folder) throws Exception {
    DFSTestUtil.createKey(folder, cluster, cluster.getConfiguration(0));
    fs().mkdirs(path(folder));
    fs().createEncryptionZone(path(folder), folder);
  }

  DistributedFileSystem fs() throws IOException {
    return cluster.getFileSystem();
  }

  /** The path of a file with the name of the file system, for jobs with another default. */
  org.apache.hadoop.fs.Path path(String name) throws IOException {
    return new org.apache.hadoop.fs.Path(fs().getUri() + "/" + name);
  }

  void write(String name, byte[] bytes) throws IOException {
    try (OutputStream out = fs().create(path(name))) {
      out.write(bytes);
    }
  }

  /** Writes a file with blocks of another size. */
  void write(String name, byte[] bytes, long blockBytes) throws IOException {
    DistributedFileSystem fs = fs();
    short replication = fs.getDefaultReplication(path(name));
    try (OutputStream out = fs.create(path(name), true, BUFFER_BYTES, replication, blockBytes)) {
      out.write(bytes);
    }
  }

  /** Writes a file whose blocks have their only replica on one DataNode. */
  void writeOn(int dataNode, String name, byte[] bytes) throws IOException {
    InetSocketAddress[] places = {cluster.getDataNodes().get(place(dataNode)).getXferAddress()};
    DistributedFileSystem fs = fs();
    try (OutputStream out =
        fs.create(
            path(name),
            FsPermission.getFileDefault(),
            true,
            BUFFER_BYTES,
            (short) 1,
            fs.getDefaultBlockSize(path(name)),
            null,
            places)) {
      out.write(bytes);
    }
  }

  /** The folder of a DataNode's blocks and metadata, as {@code --hdfs-data-dir} takes it. */
  Path dataDir(int dataNode) {
    return cluster.getInstanceStorageDir(dataNode, 0).toPath();
  }

  /** The files of the finished replicas of a DataNode, without those of their checksums. */
  List<Path> replicas(int dataNode) throws IOException {
    try (Stream<Path> files = Files.walk(dataDir(dataNode))) {
      return files
          .filter(f -> f.getFileName().toString().matches("blk_[0-9]+"))
          .filter(f -> f.toString().contains("/finalized/"))
          .sorted()
          .toList();
    }
  }

  /** Stops a DataNode and starts it again, with the same folder, and waits until it is known. */
  void restart(int dataNode) throws IOException {
    if (!cluster.restartDataNode(place(dataNode), true)) {
      throw new IOException("DataNode " + dataNode + " doesn't start again");
    }
    cluster.waitActive();
  }

  /** Waits until the NameNode knows this number of replicas of each block of a file. */
  void waitForReplicas(String name, int replicas) throws Exception {
    DFSTestUtil.waitReplication(fs(), path(name), (short) replicas);
  }

  /**
   * Deletes the first DataNode's replicas of a file that the second one has too, as at the end of a
   * move by the balancer.
   */
  void drop(String name) throws Exception {
    Block[] gone =
        DFSTestUtil.getAllBlocks(fs(), path(name)).stream()
            .map(block -> block.getBlock().getLocalBlock())
            .toArray(Block[]::new);
    DataNode from = cluster.getDataNodes().get(place(0));
    from.getFSDataset().invalidate(cluster.getNamesystem().getBlockPoolId(), gone);
  }

  @Override
  public void close() {
    cluster.shutdown(true);
  }
}
