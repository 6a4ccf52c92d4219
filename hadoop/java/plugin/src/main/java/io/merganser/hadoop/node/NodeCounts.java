package io.merganser.hadoop.node;

import java.nio.ByteBuffer;

/**
 * What the node counted in one map, from the last frame of its answer.
 *
 * @param inputRecords the lines
 * @param inputBytes their bytes, with their ends
 * @param outputRecords the records before they were combined
 * @param outputBytes the bytes of their keys and values
 * @param spilledRecords the records in the spills
 * @param combineInput the records that were combined
 * @param combineOutput the records that this gave
 * @param spills the spills
 * @param spillBytes their bytes
 * @param readBytes the bytes that the node read, of blocks and checksums
 * @param verifiedBytes the bytes of blocks that matched their checksums
 * @param cpuNanos the processor time
 */
record NodeCounts(
    long inputRecords,
    long inputBytes,
    long outputRecords,
    long outputBytes,
    long spilledRecords,
    long combineInput,
    long combineOutput,
    long spills,
    long spillBytes,
    long readBytes,
    long verifiedBytes,
    long cpuNanos) {
  /** Bytes of the frame's body: twelve numbers. */
  static final int BYTES = 12 * Long.BYTES;

  /** Reads the numbers, all of them at least 0. */
  static NodeCounts read(ByteBuffer body) throws OnHostException {
    for (int at = 0; at < BYTES; at += Long.BYTES) {
      if (body.getLong(body.position() + at) < 0) {
        throw new OnHostException(HostReason.PROTOCOL, "the node sent a negative count");
      }
    }
    return new NodeCounts(
        body.getLong(),
        body.getLong(),
        body.getLong(),
        body.getLong(),
        body.getLong(),
        body.getLong(),
        body.getLong(),
        body.getLong(),
        body.getLong(),
        body.getLong(),
        body.getLong(),
        body.getLong());
  }
}
