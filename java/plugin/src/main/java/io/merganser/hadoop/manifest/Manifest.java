package io.merganser.hadoop.manifest;

import io.merganser.hadoop.order.KeyOrder;
import io.merganser.hadoop.segment.Segment;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.zip.CRC32;

/**
 * What {@code file.out} of a map task holds whose merge was deferred: which spills there are, where
 * each partition lies in them, and how keys compare.
 *
 * <p>All numbers are big-endian:
 *
 * <pre>
 *   E9 "MGSMAP" 0A      8 bytes; no IFile begins with E9, a length of -23
 *   version             u16, 1
 *   order               u16 length, then a description of {@link KeyOrder} in UTF-8
 *   partitions          u32, at least 1
 *   spills              u32, at least 1
 *   each spill          u16 length, then its file's name in UTF-8;
 *                       then for each partition the length of its segment, u64
 *   checksum            u32, CRC-32 of all before
 * </pre>
 *
 * <p>The segments of a spill lie end to end from its first byte to its last, without compression,
 * so their lengths say all. A spill's name is the name alone: it lies in the application's
 * directory, three levels above {@code file.out} ({@code APPLICATION/output/ATTEMPT/file.out}),
 * where Hadoop put it.
 */
public final class Manifest {
  /** The version that is written, and the newest that is read. */
  public static final int VERSION = 1;

  private static final byte[] MAGIC = {(byte) 0xE9, 'M', 'G', 'S', 'M', 'A', 'P', '\n'};
  private static final int CRC_BYTES = 4;

  /** The largest manifest that is read, in bytes: more than 64 spills of 100,000 partitions. */
  private static final long BYTES_MAX = 64 << 20;

  /**
   * One spill.
   *
   * @param name its file's name, without a directory
   * @param partLengths bytes of each partition's segment, in order
   */
  public record Spill(String name, long[] partLengths) {
    /**
     * Checks the name.
     *
     * @throws IllegalArgumentException if the name could mean a file elsewhere
     */
    public Spill {
      if (name.isEmpty()
          || name.equals(".")
          || name.equals("..")
          || name.indexOf('/') >= 0
          || name.indexOf('\0') >= 0) {
        throw new IllegalArgumentException("\"" + name + "\" is not the name of a spill");
      }
    }

    private long length() {
      long sum = 0;
      for (long part : partLengths) {
        sum = Math.addExact(sum, part);
      }
      return sum;
    }
  }

  private final KeyOrder order;
  private final int partitions;
  private final List<Spill> spills;

  /** Where each segment begins: by spill, then by partition. */
  private final long[][] offsets;

  private Path directory;

  /**
   * The manifest of these spills, which are merged in the order given where keys are equal.
   *
   * @throws IllegalArgumentException if spills differ in their partitions, or have the same name,
   *     or a length can't be that of a segment
   */
  public Manifest(KeyOrder order, List<Spill> spills) {
    if (spills.isEmpty() || spills.get(0).partLengths().length == 0) {
      throw new IllegalArgumentException("a manifest has at least one spill and one partition");
    }
    this.order = order;
    this.spills = List.copyOf(spills);
    this.partitions = spills.get(0).partLengths().length;
    this.offsets = new long[spills.size()][partitions];
    Set<String> names = new HashSet<>();
    for (int i = 0; i < spills.size(); i++) {
      Spill spill = spills.get(i);
      if (spill.partLengths().length != partitions) {
        throw new IllegalArgumentException(
            spill.name() + " has " + spill.partLengths().length + " partitions, not " + partitions);
      }
      if (!names.add(spill.name())) {
        throw new IllegalArgumentException(spill.name() + " is named twice");
      }
      long offset = 0;
      for (int partition = 0; partition < partitions; partition++) {
        long length = spill.partLengths()[partition];
        if (length < Segment.EMPTY_PART_LENGTH || length > Long.MAX_VALUE - offset) {
          throw new IllegalArgumentException(
              spill.name() + ": no segment is " + length + " bytes long at offset " + offset);
        }
        offsets[i][partition] = offset;
        offset += length;
      }
    }
  }

  /** Whether a file begins as a manifest does: cheap, and true of no map output of Hadoop. */
  public static boolean isManifest(Path fileOut) throws IOException {
    try (InputStream in = Files.newInputStream(fileOut)) {
      return isManifest(in.readNBytes(MAGIC.length));
    }
  }

  /** Whether a file that begins with these bytes, at least 8, begins as a manifest does. */
  public static boolean isManifest(byte[] start) {
    return start.length >= MAGIC.length
        && Arrays.equals(start, 0, MAGIC.length, MAGIC, 0, MAGIC.length);
  }

  /**
   * Reads a manifest.
   *
   * @throws ManifestException if it is damaged or of a newer version
   */
  public static Manifest read(Path fileOut) throws IOException {
    try (InputStream in = Files.newInputStream(fileOut)) {
      return read(in, fileOut);
    }
  }

  /**
   * Reads a manifest from a file that was opened, and perhaps checked, by the caller.
   *
   * @param fileOut the file's path, from which the spills' follow
   * @throws ManifestException if it is damaged or of a newer version
   */
  public static Manifest read(InputStream in, Path fileOut) throws IOException {
    byte[] bytes = in.readNBytes((int) BYTES_MAX + 1);
    if (bytes.length > BYTES_MAX) {
      throw new ManifestException(
          fileOut + ": a manifest has no more than " + BYTES_MAX + " bytes");
    }
    Manifest manifest;
    try {
      manifest = parse(bytes);
    } catch (BufferUnderflowException
        | CharacterCodingException
        | IllegalArgumentException
        | ArithmeticException e) {
      throw new ManifestException(
          fileOut + ": damaged manifest" + (e.getMessage() == null ? "" : ": " + e.getMessage()));
    } catch (ManifestException e) {
      throw new ManifestException(fileOut + ": " + e.getMessage());
    }
    manifest.directory = applicationDirectory(fileOut);
    return manifest;
  }

  private static Manifest parse(byte[] bytes) throws ManifestException, CharacterCodingException {
    if (!isManifest(bytes)) {
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
    KeyOrder order = KeyOrder.parse(string(in));
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
    List<Spill> spills = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      String name = string(in);
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

  private static String string(ByteBuffer in) throws CharacterCodingException {
    int length = in.getShort() & 0xFFFF;
    if (length > in.remaining()) {
      throw new BufferUnderflowException();
    }
    ByteBuffer bytes = in.slice(in.position(), length);
    in.position(in.position() + length);
    return StandardCharsets.UTF_8.newDecoder().decode(bytes).toString();
  }

  /** The manifest's bytes. */
  public byte[] toBytes() {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      out.write(MAGIC);
      out.writeShort(VERSION);
      writeString(order.description(), out);
      out.writeInt(partitions);
      out.writeInt(spills.size());
      for (Spill spill : spills) {
        writeString(spill.name(), out);
        for (long length : spill.partLengths()) {
          out.writeLong(length);
        }
      }
      CRC32 crc = new CRC32();
      crc.update(bytes.toByteArray());
      out.writeInt((int) crc.getValue());
    } catch (IOException e) {
      throw new AssertionError("memory took no bytes", e);
    }
    return bytes.toByteArray();
  }

  private static void writeString(String string, DataOutputStream out) throws IOException {
    byte[] bytes = string.getBytes(StandardCharsets.UTF_8);
    if (bytes.length > 0xFFFF) {
      throw new IllegalArgumentException(
          "a string of " + bytes.length + " bytes, a manifest takes 65535");
    }
    out.writeShort(bytes.length);
    out.write(bytes);
  }

  /** Writes the manifest's bytes. */
  public void write(OutputStream out) throws IOException {
    out.write(toBytes());
  }

  /** How keys compare. */
  public KeyOrder order() {
    return order;
  }

  /** How many partitions there are, one a reducer. */
  public int partitions() {
    return partitions;
  }

  /** The spills, in the order in which equal keys come. */
  public List<Spill> spills() {
    return spills;
  }

  /** Bytes of a partition's merged segment, as reducers fetch it. */
  public long partLength(int partition) {
    long raw = Segment.EMPTY_PART_LENGTH;
    for (Spill spill : spills) {
      raw = Math.addExact(raw, spill.partLengths()[partition] - Segment.EMPTY_PART_LENGTH);
    }
    return raw;
  }

  /**
   * Where a partition lies, a segment for each spill. The spills are looked at: each must be a
   * regular file of the application's directory, no link, as long as the manifest says.
   *
   * @throws ManifestException if a spill is missing, or isn't what it was when the manifest was
   *     written
   */
  public List<Segment> segments(int partition) throws IOException {
    if (directory == null) {
      throw new IllegalStateException("a manifest that was not read from a file has no spills");
    }
    List<Segment> segments = new ArrayList<>(spills.size());
    for (int i = 0; i < spills.size(); i++) {
      Spill spill = spills.get(i);
      Path file = directory.resolve(spill.name());
      verify(file, spill.length());
      long length = spill.partLengths()[partition];
      segments.add(new Segment(file, offsets[i][partition], length - Segment.CRC_LENGTH, length));
    }
    return segments;
  }

  private static void verify(Path file, long length) throws IOException {
    BasicFileAttributes found;
    try {
      found = Files.readAttributes(file, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
    } catch (NoSuchFileException e) {
      throw new ManifestException(file + ": the spill is gone");
    }
    if (!found.isRegularFile()) {
      throw new ManifestException(file + ": no regular file, so no spill");
    }
    if (found.size() != length) {
      throw new ManifestException(
          file + ": the spill has " + found.size() + " bytes, it was written with " + length);
    }
  }

  /**
   * The directory that holds the spills of a map output.
   *
   * @throws ManifestException if the path is too short to lie in one
   */
  public static Path applicationDirectory(Path fileOut) throws ManifestException {
    Path at = fileOut.toAbsolutePath().normalize();
    for (int level = 0; level < 3; level++) {
      at = at.getParent();
      if (at == null) {
        throw new ManifestException(fileOut + ": a map output lies in output/ATTEMPT/file.out");
      }
    }
    return at;
  }
}
