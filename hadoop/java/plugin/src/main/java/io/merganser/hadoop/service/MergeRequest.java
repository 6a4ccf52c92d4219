package io.merganser.hadoop.service;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * The request that asks the merge process for one merge, in version 1 of the protocol:
 *
 * <pre>
 *   "MGSH"  version u16  kind u16  length u32  body
 * </pre>
 */
final class MergeRequest {
  private static final byte[] MAGIC = {'M', 'G', 'S', 'H'};
  private static final int VERSION = 1;
  private static final int KIND_MERGE = 1;
  private static final int HEAD_BYTES = MAGIC.length + 2 * Short.BYTES + Integer.BYTES;
  private static final int BODY_BYTES_MAX = 1 << 20;
  private static final int TEXT_BYTES_MAX = 0xFFFF;

  private MergeRequest() {}

  /**
   * The bytes of a request.
   *
   * @param skip bytes of the merged segment that are not wanted
   * @param memoryBytes the memory that the process may take for the merge
   * @throws DeclinedException if the protocol has no room for the request
   */
  static ByteBuffer of(OutputCatalog.Deferred output, long skip, long memoryBytes)
      throws IOException {
    var bytes = new ByteArrayOutputStream();
    var body = new DataOutputStream(bytes);
    body.writeLong(skip);
    body.writeLong(memoryBytes);
    writeText(body, output.order().description());
    body.writeInt(output.segments().size());
    for (var segment : output.segments()) {
      writeText(body, segment.file().toString());
      body.writeLong(segment.offset());
      body.writeLong(segment.rawLength());
      body.writeLong(segment.partLength());
    }
    if (bytes.size() > BODY_BYTES_MAX) {
      throw new DeclinedException("takes no request of " + bytes.size() + " bytes");
    }
    ByteBuffer request = ByteBuffer.allocate(HEAD_BYTES + bytes.size());
    request.put(MAGIC).putShort((short) VERSION).putShort((short) KIND_MERGE);
    request.putInt(bytes.size()).put(bytes.toByteArray());
    return request.flip();
  }

  private static void writeText(DataOutputStream out, String text) throws IOException {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    if (bytes.length > TEXT_BYTES_MAX) {
      throw new DeclinedException("takes no text of " + bytes.length + " bytes");
    }
    out.writeShort(bytes.length);
    out.write(bytes);
  }
}
