package io.merganser.hadoop.node;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Optional;

/**
 * A request to the node. Its version is the first one that has all that it says, so that nodes of
 * older releases take what they know. All numbers are big-endian:
 *
 * <pre>
 *   "MGHN"  version u16  kind u16  length u32  body
 * </pre>
 */
final class NodeRequest {
  /** The version of maps by programs that the node has. */
  static final int VERSION = 1;

  /** The version since which a job may bring its program. */
  private static final int VERSION_OF_MODULES = 2;

  /** The version since which a node tells its state. */
  static final int VERSION_OF_STATES = 3;

  private static final byte[] MAGIC = {'M', 'G', 'H', 'N'};
  private static final int KIND_MAP = 1;
  private static final int KIND_HELLO = 2;
  private static final int KIND_UPLOAD = 3;
  private static final int KIND_STATE = 4;
  private static final int HEAD_BYTES = MAGIC.length + 2 * Short.BYTES + Integer.BYTES;
  private static final int BODY_BYTES_MAX = 5 << 20;
  private static final int TEXT_BYTES_MAX = 0xFFFF;

  private static final int SSDLET_BUILT_IN = 1;
  private static final int SSDLET_MODULE = 2;
  private static final int PARTITIONER_HASH = 1;
  private static final int ORDER_TEXT = 1;
  private static final int CODEC_NONE = 0;

  private NodeRequest() {}

  /**
   * A map of one split.
   *
   * @param attempt the task attempt, for the node's log
   * @param program what maps, and how it combines
   * @param split the split in its file
   * @param blocks the parts of blocks that the split consists of
   * @param tail the bytes behind the split
   * @param delimiter the job's own record delimiter; empty for LF, CR and CRLF
   * @param lineMax a line of that many bytes or more is dropped
   * @param partitions the reducers
   * @param memoryBytes the memory for records
   * @param patienceMillis how long the map waits for a place
   */
  record Map(
      String attempt,
      NodeProgram program,
      FileSlice split,
      SplitBlocks blocks,
      LineTail tail,
      Optional<byte[]> delimiter,
      int lineMax,
      int partitions,
      long memoryBytes,
      int patienceMillis) {}

  /**
   * The bytes of a request for a map.
   *
   * @throws IOException if the protocol has no room for it
   */
  static ByteBuffer map(Map map) throws IOException {
    var bytes = new ByteArrayOutputStream();
    var body = new DataOutputStream(bytes);
    writeText(body, map.attempt());
    Optional<NodeModule> module = map.program().module();
    if (module.isPresent()) {
      body.writeByte(SSDLET_MODULE);
      body.write(module.get().sha256());
    } else {
      body.writeByte(SSDLET_BUILT_IN);
      writeText(body, map.program().name());
    }
    writeText(body, map.program().arguments());
    writeText(body, map.blocks().pool());
    body.writeInt(map.blocks().ranges().size());
    for (SplitBlocks.Range range : map.blocks().ranges()) {
      body.writeLong(range.block());
      body.writeLong(range.generation());
      body.writeLong(range.blockLength());
      body.writeLong(range.offset());
      body.writeLong(range.length());
    }
    body.writeLong(map.split().start());
    body.writeLong(map.split().end());
    body.writeInt(map.tail().bytes().length);
    body.write(map.tail().bytes());
    body.writeByte(map.tail().atEndOfFile() ? 1 : 0);
    writeShortBytes(body, map.delimiter().orElse(new byte[0]));
    body.writeInt(map.lineMax());
    body.writeInt(map.partitions());
    body.writeByte(PARTITIONER_HASH);
    body.writeByte(ORDER_TEXT);
    body.writeByte(map.program().keyType().code);
    body.writeByte(map.program().valueType().code);
    body.writeByte(map.program().combine().code);
    body.writeByte(CODEC_NONE);
    body.writeLong(map.memoryBytes());
    body.writeInt(map.patienceMillis());
    if (bytes.size() > BODY_BYTES_MAX) {
      throw new IOException("the protocol takes no request of " + bytes.size() + " bytes");
    }
    int version = module.isPresent() ? VERSION_OF_MODULES : VERSION;
    return request(version, KIND_MAP, bytes.toByteArray());
  }

  /** The bytes of a request to keep a module for the maps that follow. */
  static ByteBuffer upload(NodeModule module) {
    return request(VERSION_OF_MODULES, KIND_UPLOAD, module.bytes());
  }

  /** The bytes of a request for the version and the load of the node. */
  static ByteBuffer hello() {
    return request(VERSION, KIND_HELLO, new byte[0]);
  }

  /**
   * The bytes of a request for the state of the node.
   *
   * @param folders whether it looks at its folders, which may wait for a disk
   */
  static ByteBuffer state(boolean folders) {
    return request(VERSION_OF_STATES, KIND_STATE, new byte[] {(byte) (folders ? 1 : 0)});
  }

  private static ByteBuffer request(int version, int kind, byte[] body) {
    ByteBuffer request = ByteBuffer.allocate(HEAD_BYTES + body.length);
    request.put(MAGIC).putShort((short) version).putShort((short) kind);
    return request.putInt(body.length).put(body).flip();
  }

  private static void writeText(DataOutputStream out, String text) throws IOException {
    writeShortBytes(out, text.getBytes(StandardCharsets.UTF_8));
  }

  private static void writeShortBytes(DataOutputStream out, byte[] bytes) throws IOException {
    if (bytes.length > TEXT_BYTES_MAX) {
      throw new IOException("the protocol takes no text of " + bytes.length + " bytes");
    }
    out.writeShort(bytes.length);
    out.write(bytes);
  }
}
