package io.merganser.hadoop.node;

import java.io.IOException;
import java.lang.reflect.Proxy;
import java.net.URI;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.DFSClient;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.ClientProtocol;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo.DatanodeInfoBuilder;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedBlocks;

/**
 * HDFS with one file, whose bytes are in a local file: the client's class, and a NameNode that
 * answers only where blocks are.
 */
public final class FakeHdfs extends DistributedFileSystem {
  /** The pool of all blocks. */
  public static final String POOL = "BP-1-127.0.0.1-1";

  private static final String FILE = "merganser.test.fake-hdfs.file";
  private static final String BLOCK_BYTES = "merganser.test.fake-hdfs.block-bytes";
  private static final String GROWS = "merganser.test.fake-hdfs.grows";

  private URI uri;
  private DFSClient client;

  /** Makes a job read this file system, and returns the path of the file. */
  public static Path use(Configuration conf, java.nio.file.Path file, long blockBytes) {
    conf.setClass("fs.hdfs.impl", FakeHdfs.class, FileSystem.class);
    conf.setBoolean("fs.hdfs.impl.disable.cache", true);
    conf.set(FILE, file.toString());
    conf.setLong(BLOCK_BYTES, blockBytes);
    return new Path("hdfs://fake/in");
  }

  /** Makes the file longer by a byte each time a job opens it. */
  public static void grow(Configuration conf) {
    conf.setBoolean(GROWS, true);
  }

  /** The blocks of a file, all of them with a replica on a machine with this address. */
  public static List<LocatedBlock> blocks(long fileBytes, long blockBytes, String address) {
    DatanodeInfo place =
        new DatanodeInfoBuilder()
            .setIpAddr(address)
            .setHostName("host")
            .setDatanodeUuid("uuid")
            .build();
    List<LocatedBlock> blocks = new ArrayList<>();
    for (long at = 0; at < fileBytes; at += blockBytes) {
      ExtendedBlock block =
          new ExtendedBlock(
              POOL, 1000 + at / blockBytes, Math.min(blockBytes, fileBytes - at), 7 + at);
      LocatedBlock located =
          new LocatedBlock(
              block, new DatanodeInfo[] {place}, new String[] {"s"}, new StorageType[] {null});
      located.setStartOffset(at);
      blocks.add(located);
    }
    return blocks;
  }

  @Override
  public void initialize(URI name, Configuration conf) throws IOException {
    setConf(conf);
    uri = name;
    client = new DFSClient(null, nameNode(), conf, null);
  }

  private ClientProtocol nameNode() {
    return (ClientProtocol)
        Proxy.newProxyInstance(
            FakeHdfs.class.getClassLoader(),
            new Class<?>[] {ClientProtocol.class},
            (proxy, method, arguments) -> {
              if (!method.getName().equals("getBlockLocations")) {
                throw new UnsupportedOperationException(method.getName());
              }
              long length = java.nio.file.Files.size(java.nio.file.Path.of(getConf().get(FILE)));
              List<LocatedBlock> all =
                  blocks(length, getConf().getLong(BLOCK_BYTES, length), "127.0.0.1");
              return new LocatedBlocks(
                  length, false, all, all.get(all.size() - 1), true, null, null);
            });
  }

  @Override
  public DFSClient getClient() {
    return client;
  }

  @Override
  public URI getUri() {
    return uri;
  }

  @Override
  public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    java.nio.file.Path file = java.nio.file.Path.of(getConf().get(FILE));
    if (getConf().getBoolean(GROWS, false)) {
      java.nio.file.Files.write(file, new byte[] {'\n'}, StandardOpenOption.APPEND);
    }
    return FileSystem.getLocal(getConf()).getRaw().open(new Path(file.toUri()), bufferSize);
  }

  @Override
  public void close() {
    // Nothing was opened.
  }
}
