package io.merganser.hadoop.manifest;

import io.merganser.hadoop.order.KeyOrder;
import io.merganser.hadoop.segment.Segment;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * The content of {@code file.out} after a map task has deferred its merge: the names of the spills,
 * the length of each partition in each of them, and the order of keys. {@link ManifestBytes} has
 * the bytes.
 *
 * <p>The segments of a spill follow one another without gaps from its first byte to its last,
 * without compression, so their lengths give their offsets. A spill's name has no directory: the
 * file is where Hadoop put it, in the application's directory, three levels above {@code file.out}
 * ({@code APPLICATION/output/ATTEMPT/file.out}).
 *
 * <p>A NodeManager reads manifests that any user can write. {@link #BYTES_MAX} and {@link
 * #SPILLS_MAX} bound the memory and the open files that one manifest can cost it. A map task with a
 * larger output merges it as stock Hadoop does.
 */
public final class Manifest {
  /** The version that is written, and the newest that is read. */
  public static final int VERSION = ManifestBytes.VERSION;

  /**
   * The largest manifest that is written or read, in bytes: 64 spills of 4,000 partitions. With
   * segments of 64 KiB, the least average for which a task defers by default, that is a map output
   * of 16 GiB.
   */
  public static final int BYTES_MAX = 2 << 20;

  /** The most spills in a manifest. A merge opens them all and needs 4 KiB of memory for each. */
  public static final int SPILLS_MAX = 1024;

  /** The longest name that a file system takes, in bytes. */
  private static final int NAME_BYTES_MAX = 255;

  /** The bytes of a file that tell whether it is a manifest. */
  public static final int START_BYTES = 8;

  /** Heap of a spill besides its lengths and the characters of its name, in bytes. */
  private static final int SPILL_HEAP_BYTES = 160;

  /**
   * One spill.
   *
   * @param name the name of its file, without a directory
   * @param partLengths bytes of the segment of each partition, in order
   */
  public record Spill(String name, long[] partLengths) {
    /**
     * Checks the name.
     *
     * @throws IllegalArgumentException if the name could mean a file in another directory
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
      return offset(partLengths.length);
    }

    /** The offset of a partition's segment, or of the spill's end. */
    private long offset(int partition) {
      long sum = 0;
      for (int before = 0; before < partition; before++) {
        sum = Math.addExact(sum, partLengths[before]);
      }
      return sum;
    }
  }

  private final KeyOrder order;
  private final int partitions;
  private final List<Spill> spills;

  private Path directory;

  /**
   * Makes the manifest of these spills. Records of earlier spills come first if their keys are
   * equal.
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
    Set<String> names = new HashSet<>();
    for (Spill spill : spills) {
      if (spill.partLengths().length != partitions) {
        throw new IllegalArgumentException(
            spill.name() + " has " + spill.partLengths().length + " partitions, not " + partitions);
      }
      if (!names.add(spill.name())) {
        throw new IllegalArgumentException(spill.name() + " is named twice");
      }
      long offset = 0;
      for (long length : spill.partLengths()) {
        if (length < Segment.EMPTY_PART_LENGTH || length > Long.MAX_VALUE - offset) {
          throw new IllegalArgumentException(
              spill.name() + ": no segment is " + length + " bytes long at offset " + offset);
        }
        offset += length;
      }
    }
  }

  /**
   * Whether a manifest of that many spills and partitions is small enough to be written and read.
   *
   * @param order the order of keys
   */
  public static boolean fits(KeyOrder order, int spills, int partitions) {
    return spills <= SPILLS_MAX
        && ManifestBytes.most(order, spills, partitions, NAME_BYTES_MAX) <= BYTES_MAX;
  }

  /** Whether a file begins as a manifest does. No map output of stock Hadoop does. */
  public static boolean isManifest(Path fileOut) throws IOException {
    try (InputStream in = Files.newInputStream(fileOut)) {
      return isManifest(in.readNBytes(START_BYTES));
    }
  }

  /** Whether a file that begins with these bytes, at least 8, begins as a manifest does. */
  public static boolean isManifest(byte[] start) {
    return ManifestBytes.areManifest(start);
  }

  /**
   * Reads a manifest.
   *
   * @throws ManifestException if it is damaged, too large or of a newer version
   */
  public static Manifest read(Path fileOut) throws IOException {
    try (InputStream in = Files.newInputStream(fileOut)) {
      return read(in, fileOut);
    }
  }

  /**
   * Reads a manifest from a file that the caller has opened, and perhaps checked.
   *
   * @param fileOut the path of the file, which gives the directory of the spills
   * @throws ManifestException if it is damaged, too large or of a newer version
   */
  public static Manifest read(InputStream in, Path fileOut) throws IOException {
    byte[] bytes = in.readNBytes(BYTES_MAX + 1);
    if (bytes.length > BYTES_MAX) {
      throw new ManifestException(
          fileOut + ": the manifest has more than " + BYTES_MAX + " bytes, so it is not served");
    }
    Manifest manifest;
    try {
      manifest = ManifestBytes.parse(bytes);
    } catch (ManifestException e) {
      throw new ManifestException(fileOut + ": " + e.getMessage());
    }
    manifest.directory = applicationDirectory(fileOut);
    return manifest;
  }

  /** The manifest's bytes. */
  public byte[] toBytes() {
    return ManifestBytes.of(this);
  }

  /** Writes the manifest's bytes. */
  public void write(OutputStream out) throws IOException {
    out.write(toBytes());
  }

  /** How keys compare. */
  public KeyOrder order() {
    return order;
  }

  /** The number of partitions, which is that of reducers. */
  public int partitions() {
    return partitions;
  }

  /** The spills; of equal keys, those of earlier spills come first. */
  public List<Spill> spills() {
    return spills;
  }

  /** About the bytes of heap that the manifest takes. */
  public long heapBytes() {
    long bytes = 0;
    for (Spill spill : spills) {
      bytes += SPILL_HEAP_BYTES + 2L * spill.name().length() + (long) partitions * Long.BYTES;
    }
    return bytes;
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
   * The segments of a partition, one for each spill. Checks the spills: each must be a regular file
   * in the application's directory, not a link, and as long as the manifest says.
   *
   * @throws ManifestException if a spill is missing, or isn't as it was when the manifest was
   *     written
   */
  public List<Segment> segments(int partition) throws IOException {
    if (directory == null) {
      throw new IllegalStateException("only a manifest that was read from a file has spills");
    }
    List<Segment> segments = new ArrayList<>(spills.size());
    for (Spill spill : spills) {
      Path file = directory.resolve(spill.name());
      verify(file, spill.length());
      long length = spill.partLengths()[partition];
      segments.add(new Segment(file, spill.offset(partition), length - Segment.CRC_LENGTH, length));
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
      throw new ManifestException(file + ": not a regular file, so not a spill");
    }
    if (found.size() != length) {
      throw new ManifestException(
          file + ": the spill has " + found.size() + " bytes, it was written with " + length);
    }
  }

  /**
   * The directory that holds the spills of a map output.
   *
   * @throws ManifestException if the path is too short to have one
   */
  public static Path applicationDirectory(Path fileOut) throws ManifestException {
    Path at = fileOut.toAbsolutePath().normalize();
    for (int level = 0; level < 3; level++) {
      at = at.getParent();
      if (at == null) {
        throw new ManifestException(
            fileOut + ": the path of a map output ends with output/ATTEMPT/file.out");
      }
    }
    return at;
  }
}
