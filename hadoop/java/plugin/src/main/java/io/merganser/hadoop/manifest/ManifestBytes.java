package io.merganser.hadoop.manifest;

import io.merganser.hadoop.manifest.Manifest.Spill;
import io.merganser.hadoop.order.KeyOrder;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32;

/**
 * The bytes of a manifest. All numbers are big-endian:
 *
 * <pre>
 *   E9 "MGSMAP" 0A      8 bytes; no IFile begins with E9, a length of -23
 *   version             u16, 1
 *   order               u16 length, then a description of {@link KeyOrder} in UTF-8
 *   partitions          u32, at least 1
 *   spills              u32, at least 1
 *   each spill          u16 length, then the name of its file in UTF-8;
 *                       then for each partition the length of its segment, u64
 *   checksum            u32, CRC-32 of all bytes before it
 * </pre>
 */
final class ManifestBytes {
  static final int VERSION = 1;

  private static final byte[] MAGIC = {(byte) 0xE9, 'M', 'G', 'S', 'M', 'A', 'P', '\n'};
  private static final int CRC_BYTES = 4;
  private static final int TEXT_BYTES_MAX = 0xFFFF;

  private ManifestBytes() {}

  /** Whether a file that begins with these bytes, at least 8, begins as a manifest does. */
  static boolean areManifest(byte[] start) {
    return start.length >= MAGIC.length
        && Arrays.equals(start, 0, MAGIC.length, MAGIC, 0, MAGIC.length);
  }

  /** The most bytes of a manifest whose spills have names of at most {@code nameBytes} bytes. */
  static long most(KeyOrder order, long spills, long partitions, int nameBytes) {
    long head = MAGIC.length + 3 * Short.BYTES + order.description().length() + 2 * Integer.BYTES;
    return head + spills * (Short.BYTES + nameBytes + partitions * Long.BYTES) + CRC_BYTES;
  }

  /**
   * Reads a manifest.
   *
   * @throws ManifestException if it is damaged or of another version
   */
  static Manifest parse(byte[] bytes) throws ManifestException {
    try {
      return parseChecked(bytes);
    } catch (BufferUnderflowException
        | CharacterCodingException
        | IllegalArgumentException
        | ArithmeticException e) {
      throw new ManifestException(
          "damaged manifest" + (e.getMessage() == null ? "" : ": " + e.getMessage()));
    }
  }

  private static Manifest parseChecked(byte[] bytes)
      throws ManifestException, CharacterCodingException {
    if (!areManifest(bytes)) {
      throw new ManifestException("not a manifest");
    }
    ByteBuffer in = ByteBuffer.wrap(bytes).position(MAGIC.length);
    int version = in.getShort() & 0xFFFF;
    if (version != VERSION) {
      throw new ManifestException(
          "a manifest of version "
              + version
              + ", this node reads version "
              + VERSION
              + ": upgrade its plugin");
    }
    int end = bytes.length - CRC_BYTES;
    CRC32 crc = new CRC32();
    crc.update(bytes, 0, Math.max(0, end));
    if (end < in.position() || in.getInt(end) != (int) crc.getValue()) {
      throw new ManifestException("damaged manifest, its checksum doesn't match");
    }
    in.limit(end);
    KeyOrder order = KeyOrder.parse(text(in));
    int partitions = in.getInt();
    int count = in.getInt();
    if (partitions < 1 || count < 1 || (long) partitions * count > in.remaining() / Long.BYTES) {
      throw new ManifestException(
          "damaged manifest, "
              + count
              + " spills of "
              + partitions
              + " partitions don't fit into its size");
    }
    if (count > Manifest.SPILLS_MAX) {
      throw new ManifestException(
          "a manifest of " + count + " spills, but at most " + Manifest.SPILLS_MAX + " are served");
    }
    List<Spill> spills = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      String name = text(in);
      long[] partLengths = new long[partitions];
      in.asLongBuffer().get(partLengths);
      in.position(in.position() + partitions * Long.BYTES);
      spills.add(new Spill(name, partLengths));
    }
    if (in.hasRemaining()) {
      throw new ManifestException("damaged manifest, " + in.remaining() + " bytes too many");
    }
    return new Manifest(order, spills);
  }

  private static String text(ByteBuffer in) throws CharacterCodingException {
    int length = in.getShort() & 0xFFFF;
    if (length > in.remaining()) {
      throw new BufferUnderflowException();
    }
    ByteBuffer bytes = in.slice(in.position(), length);
    in.position(in.position() + length);
    return StandardCharsets.UTF_8.newDecoder().decode(bytes).toString();
  }

  static byte[] of(Manifest manifest) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      out.write(MAGIC);
      out.writeShort(VERSION);
      writeText(manifest.order().description(), out);
      out.writeInt(manifest.partitions());
      out.writeInt(manifest.spills().size());
      for (Spill spill : manifest.spills()) {
        writeText(spill.name(), out);
        for (long length : spill.partLengths()) {
          out.writeLong(length);
        }
      }
      CRC32 crc = new CRC32();
      crc.update(bytes.toByteArray());
      out.writeInt((int) crc.getValue());
    } catch (IOException e) {
      throw new AssertionError("writing to memory failed", e);
    }
    return bytes.toByteArray();
  }

  private static void writeText(String text, DataOutputStream out) throws IOException {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    if (bytes.length > TEXT_BYTES_MAX) {
      throw new IllegalArgumentException(
          "a text of " + bytes.length + " bytes, a manifest takes " + TEXT_BYTES_MAX);
    }
    out.writeShort(bytes.length);
    out.write(bytes);
  }
}
