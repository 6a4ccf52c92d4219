package io.merganser.hadoop.node;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.merganser.hadoop.node.SplitBlocks.Range;
import java.io.IOException;
import java.net.InetAddress;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.crypto.CipherSuite;
import org.apache.hadoop.crypto.CryptoProtocolVersion;
import org.apache.hadoop.fs.FileEncryptionInfo;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.ViewDistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicy;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedBlocks;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.erasurecode.ECSchema;
import org.apache.hadoop.security.token.Token;
import org.junit.jupiter.api.Test;

class SplitBlocksTest {
  private static final Path FILE = new Path("hdfs://fake/in");
  private static final String HERE = "127.0.0.1";

  /** An address of the networks that documents may use. */
  private static final String ELSEWHERE = "192.0.2.1";

  private static LocatedBlocks file(long bytes, List<LocatedBlock> blocks) {
    return new LocatedBlocks(bytes, false, blocks, blocks.get(blocks.size() - 1), true, null, null);
  }

  private static SplitBlocks of(long start, long length, LocatedBlocks found)
      throws OnHostException, IOException {
    return SplitBlocks.of(new FileSlice(FILE, start, length), found);
  }

  private static void refused(HostReason reason, long start, long length, LocatedBlocks found) {
    OnHostException e = assertThrows(OnHostException.class, () -> of(start, length, found));
    assertEquals(reason, e.reason(), e.getMessage());
  }

  /** Every split of a small file, with blocks of every size. */
  @Test
  void theRangesAreTheSplit() throws Exception {
    for (long fileBytes = 1; fileBytes <= 9; fileBytes++) {
      for (long blockBytes = 1; blockBytes <= 10; blockBytes++) {
        LocatedBlocks found = file(fileBytes, FakeHdfs.blocks(fileBytes, blockBytes, HERE));
        for (long start = 0; start < fileBytes; start++) {
          for (long length = 1; start + length <= fileBytes; length++) {
            SplitBlocks blocks = of(start, length, found);
            assertEquals(FakeHdfs.POOL, blocks.pool());
            assertEquals(fileBytes, blocks.fileLength());
            long at = start;
            for (Range range : blocks.ranges()) {
              assertEquals(at, (range.block() - 1000) * blockBytes + range.offset());
              assertEquals(
                  Math.min(blockBytes, fileBytes - at / blockBytes * blockBytes),
                  range.blockLength());
              assertEquals(7 + at / blockBytes * blockBytes, range.generation());
              at += range.length();
            }
            assertEquals(start + length, at);
          }
        }
      }
    }
  }

  @Test
  void filesThatTheNodeCannotReadAreRefused() throws Exception {
    List<LocatedBlock> blocks = FakeHdfs.blocks(100, 40, HERE);
    LocatedBlock last = blocks.get(2);
    refused(
        HostReason.UNDER_CONSTRUCTION,
        0,
        100,
        new LocatedBlocks(100, true, blocks, last, false, null, null));
    FileEncryptionInfo secret =
        new FileEncryptionInfo(
            CipherSuite.AES_CTR_NOPADDING,
            CryptoProtocolVersion.ENCRYPTION_ZONES,
            new byte[16],
            new byte[16],
            "key",
            "1");
    refused(
        HostReason.ENCRYPTED_INPUT,
        0,
        100,
        new LocatedBlocks(100, false, blocks, last, true, secret, null));
    ErasureCodingPolicy striped = new ErasureCodingPolicy(new ECSchema("rs", 6, 3), 1 << 20);
    refused(
        HostReason.ERASURE_CODED,
        0,
        100,
        new LocatedBlocks(100, false, blocks, last, true, null, striped));
  }

  /** As a NameNode answers with block tokens, also on a cluster without Kerberos. */
  @Test
  void blocksThatNeedATokenAreRefused() throws Exception {
    List<LocatedBlock> blocks = FakeHdfs.blocks(100, 40, HERE);
    Text kind = new Text("HDFS_BLOCK_TOKEN");
    blocks
        .get(2)
        .setBlockToken(new Token<>(new byte[] {1}, new byte[] {2}, kind, new Text("service")));
    assertEquals(2, of(0, 80, file(100, blocks)).ranges().size());
    refused(HostReason.SECURE, 0, 81, file(100, blocks));
  }

  /** The protocol has room for this number of blocks in a request. */
  @Test
  void splitsOfManyBlocksAreRefused() throws Exception {
    LocatedBlocks found = file(600, FakeHdfs.blocks(600, 2, HERE));
    assertEquals(256, of(0, 512, found).ranges().size());
    refused(HostReason.SPLIT_SIZE, 0, 513, found);
    // A split of the same length, whose first and last blocks are cut.
    refused(HostReason.SPLIT_SIZE, 1, 512, found);
  }

  @Test
  void everyBlockOfTheSplitHasAReplicaHere() throws Exception {
    List<LocatedBlock> blocks = new ArrayList<>(FakeHdfs.blocks(100, 40, HERE));
    blocks.set(2, FakeHdfs.blocks(100, 40, ELSEWHERE).get(2));
    assertEquals(2, of(0, 80, file(100, blocks)).ranges().size());
    refused(HostReason.NO_LOCAL_REPLICA, 0, 81, file(100, blocks));
    blocks.set(0, FakeHdfs.blocks(100, 40, InetAddress.getLocalHost().getHostAddress()).get(0));
    of(0, 80, file(100, blocks));
    blocks.get(1).setCorrupt(true);
    refused(HostReason.NO_LOCAL_REPLICA, 0, 80, file(100, blocks));
  }

  @Test
  void blocksThatDontCoverTheSplitAreRefused() {
    List<LocatedBlock> blocks = FakeHdfs.blocks(100, 40, HERE);
    refused(HostReason.HDFS_FAILED, 0, 101, file(100, blocks));
    refused(HostReason.HDFS_FAILED, 0, 100, file(100, blocks.subList(0, 2)));
    refused(HostReason.HDFS_FAILED, 0, 80, file(100, blocks.subList(1, 3)));
    refused(HostReason.HDFS_FAILED, 0, 100, file(100, List.of(blocks.get(0), blocks.get(2))));
  }

  @Test
  void filesThatAreNotPlainOnesOfHdfsAreRefused() {
    Configuration conf = new Configuration();
    assertEquals(HostReason.NOT_HDFS, reason(conf, "file:///etc/hosts", 10));
    assertEquals(HostReason.COMPRESSED_INPUT, reason(conf, "hdfs://fake/in.gz", 10));
    assertEquals(HostReason.COMPRESSED_INPUT, reason(conf, "hdfs://fake/in.bz2", 10));
    assertEquals(HostReason.SPLIT_SIZE, reason(conf, "hdfs://fake/in", 0));
    assertEquals(HostReason.SPLIT_SIZE, reason(conf, "hdfs://fake/in", 1L << 31));
    conf.setClass(
        "fs.hdfs.impl",
        org.apache.hadoop.fs.viewfs.ViewFileSystem.class,
        org.apache.hadoop.fs.FileSystem.class);
    conf.setBoolean("fs.hdfs.impl.disable.cache", true);
    assertEquals(HostReason.HDFS_FAILED, reason(conf, "hdfs://fake/in", 10));
    conf.setClass("fs.hdfs.impl", Mounts.class, org.apache.hadoop.fs.FileSystem.class);
    assertEquals(HostReason.NOT_HDFS, reason(conf, "hdfs://fake/in", 10));
  }

  /** Several file systems below one name; that of a path depends on the mounts. */
  public static final class Mounts extends ViewDistributedFileSystem {
    @Override
    public void initialize(URI name, Configuration conf) {
      setConf(conf);
    }
  }

  private static HostReason reason(Configuration conf, String file, long length) {
    FileSlice split = new FileSlice(new Path(file), 0, length);
    return assertThrows(OnHostException.class, () -> SplitBlocks.of(split, conf)).reason();
  }
}
