package io.merganser.hadoop.node;

import java.io.IOException;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.ViewDistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicy;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedBlocks;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.CompressionCodecFactory;
import org.apache.hadoop.net.NetUtils;

/**
 * The parts of HDFS blocks that a split consists of, in order. Each of them has a replica on this
 * machine.
 *
 * @param pool the block pool
 * @param ranges the parts
 * @param fileLength the bytes of the file
 */
record SplitBlocks(String pool, List<Range> ranges, long fileLength) {
  /**
   * Most bytes of a split, as the protocol has it. Hadoop's own reader counts the bytes of a split
   * in an int.
   */
  private static final long SPLIT_BYTES_MAX = (2L << 30) - (8 << 20);

  /** Most ranges of a request. */
  private static final int RANGES_MAX = 256;

  /**
   * A part of a block.
   *
   * @param block the id of the block
   * @param generation its generation stamp
   * @param blockLength the bytes of the whole block
   * @param offset the first byte within the block
   * @param length the bytes of the part
   */
  record Range(long block, long generation, long blockLength, long offset, long length) {}

  /**
   * Asks the NameNode for the blocks of a split.
   *
   * @throws OnHostException if the node couldn't map it
   */
  static SplitBlocks of(FileSlice split, Configuration conf) throws OnHostException {
    if (split.length() <= 0 || split.length() > SPLIT_BYTES_MAX) {
      throw new OnHostException(HostReason.SPLIT_SIZE, split + " is empty or too long");
    }
    CompressionCodec codec = new CompressionCodecFactory(conf).getCodec(split.path());
    if (codec != null) {
      throw new OnHostException(
          HostReason.COMPRESSED_INPUT, split.path() + " is read by " + codec.getClass().getName());
    }
    try {
      FileSystem fs = split.path().getFileSystem(conf);
      // The client of a ViewDistributedFileSystem doesn't know the mounts.
      if (!(fs instanceof DistributedFileSystem hdfs) || fs instanceof ViewDistributedFileSystem) {
        throw new OnHostException(
            HostReason.NOT_HDFS, split.path() + " is in a " + fs.getClass().getName());
      }
      String name = split.path().toUri().getPath();
      LocatedBlocks found = hdfs.getClient().getLocatedBlocks(name, split.start(), split.length());
      return of(split, found);
    } catch (IOException e) {
      throw new OnHostException(
          HostReason.HDFS_FAILED, "the blocks of " + split + ": " + e.getMessage(), e);
    }
  }

  /** Checks the blocks and cuts them to the split. */
  static SplitBlocks of(FileSlice split, LocatedBlocks found) throws OnHostException, IOException {
    if (found.isUnderConstruction()) {
      throw new OnHostException(HostReason.UNDER_CONSTRUCTION, split.path() + " is being written");
    }
    if (found.getFileEncryptionInfo() != null) {
      throw new OnHostException(
          HostReason.ENCRYPTED_INPUT, split.path() + " is in an encryption zone");
    }
    ErasureCodingPolicy coded = found.getErasureCodingPolicy();
    if (coded != null && !coded.isReplicationPolicy()) {
      throw new OnHostException(
          HostReason.ERASURE_CODED, split.path() + " is stored as " + coded.getName());
    }
    String pool = null;
    List<Range> ranges = new ArrayList<>();
    long at = split.start();
    for (LocatedBlock block : found.getLocatedBlocks()) {
      long blockEnd = block.getStartOffset() + block.getBlockSize();
      if (blockEnd <= at || at >= split.end()) {
        continue;
      }
      String here = block.getBlock().getBlockPoolId();
      if (block.getStartOffset() > at || pool != null && !pool.equals(here)) {
        throw new OnHostException(
            HostReason.HDFS_FAILED, "the blocks of " + split + " leave a gap at byte " + at);
      }
      check(split, block);
      pool = here;
      long length = Math.min(blockEnd, split.end()) - at;
      ranges.add(
          new Range(
              block.getBlock().getBlockId(),
              block.getBlock().getGenerationStamp(),
              block.getBlockSize(),
              at - block.getStartOffset(),
              length));
      at += length;
    }
    if (at != split.end()) {
      throw new OnHostException(
          HostReason.HDFS_FAILED, split + " is longer than the file, which ends at byte " + at);
    }
    if (ranges.size() > RANGES_MAX) {
      throw new OnHostException(HostReason.SPLIT_SIZE, split + " has " + ranges.size() + " blocks");
    }
    return new SplitBlocks(pool, List.copyOf(ranges), found.getFileLength());
  }

  private static void check(FileSlice split, LocatedBlock block) throws OnHostException {
    // A NameNode gives tokens if dfs.block.access.token.enable is true, also without Kerberos.
    if (block.getBlockToken().getIdentifier().length > 0) {
      throw new OnHostException(
          HostReason.SECURE,
          block.getBlock() + " may be read with a block token only, which the node can't check");
    }
    if (block.isStriped()) {
      throw new OnHostException(HostReason.ERASURE_CODED, split.path() + " has striped blocks");
    }
    if (block.isCorrupt()) {
      throw new OnHostException(
          HostReason.NO_LOCAL_REPLICA, "all replicas of " + block.getBlock() + " are damaged");
    }
    for (DatanodeInfo place : block.getLocations()) {
      if (isHere(place)) {
        return;
      }
    }
    throw new OnHostException(
        HostReason.NO_LOCAL_REPLICA, block.getBlock() + " has no replica on this machine");
  }

  private static boolean isHere(DatanodeInfo place) {
    try {
      return NetUtils.isLocalAddress(InetAddress.getByName(place.getIpAddr()));
    } catch (IOException e) {
      return false;
    }
  }
}
