package io.merganser.hadoop.segment;

import java.nio.file.Path;

/**
 * The bytes of one partition in a spill, in Hadoop's IFile form without compression.
 *
 * @param file the spill
 * @param offset bytes before the segment
 * @param rawLength bytes of its records and of the end marker
 * @param partLength all bytes: {@code rawLength} and the 4 bytes of the checksum
 */
public record Segment(Path file, long offset, long rawLength, long partLength) {
  /** Bytes of the end marker, FF FF: two lengths of -1. */
  public static final int END_LENGTH = 2;

  /** Bytes of a checksum: CRC-32, big-endian, of all bytes before it. */
  public static final int CRC_LENGTH = 4;

  /** Bytes of the smallest segment: no records, the end marker and the checksum. */
  public static final int EMPTY_PART_LENGTH = END_LENGTH + CRC_LENGTH;

  /**
   * Checks the numbers.
   *
   * @throws IllegalArgumentException if the lengths can't be those of a segment without compression
   */
  public Segment {
    if (offset < 0
        || rawLength < END_LENGTH
        || rawLength > Long.MAX_VALUE - offset - CRC_LENGTH
        || partLength != rawLength + CRC_LENGTH) {
      throw new IllegalArgumentException(
          file
              + ": no segment of an uncompressed spill has offset "
              + offset
              + ", raw length "
              + rawLength
              + " and length "
              + partLength);
    }
  }
}
