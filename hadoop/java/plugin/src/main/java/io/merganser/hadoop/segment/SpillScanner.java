package io.merganser.hadoop.segment;

import java.util.Arrays;
import java.util.zip.CRC32;
import org.apache.hadoop.io.WritableUtils;

/**
 * Checks the bytes of a spill while they pass, in pieces of any size: one segment for each
 * partition, end to end. The framing of every record, every end marker and every checksum must be
 * right. The scanner finds the ends of the segments by itself, so no index is needed before.
 *
 * <pre>
 *   segment   { VInt key length   VInt value length   key   value } ...   FF FF   CRC-32
 *   state     LENGTHS                                 BODY                LENGTHS CHECKSUM
 * </pre>
 */
public final class SpillScanner {
  private static final int VINT_BYTES_MAX = 5;
  private static final long END_LENGTH_VALUE = -1;

  private enum State {
    LENGTHS,
    BODY,
    CHECKSUM,
    DONE
  }

  private final long[] partLengths;
  private final CRC32 crc = new CRC32();
  private State state = State.LENGTHS;
  private int partition;
  private long position;
  private long segmentStart;
  private long records;

  /** The length that is being read. */
  private long number;

  private int numberBytesLeft;
  private boolean negative;
  private boolean keyLengthKnown;
  private long keyLength;
  private long bodyLeft;
  private int checksum;
  private int checksumBytesLeft;

  /**
   * @param partitions the segments of the spill, at least one
   */
  public SpillScanner(int partitions) {
    partLengths = new long[partitions];
  }

  /**
   * Checks the next bytes.
   *
   * @throws DamagedSegmentException if they can't be those of a spill; the scanner must not be used
   *     further
   */
  public void accept(byte[] bytes, int offset, int length) throws DamagedSegmentException {
    int end = offset + length;
    int at = offset;
    int summed = offset;
    while (at < end) {
      switch (state) {
        case LENGTHS -> {
          lengthByte(bytes[at++]);
          if (state == State.CHECKSUM) {
            crc.update(bytes, summed, at - summed);
          }
        }
        case BODY -> {
          int some = (int) Math.min(bodyLeft, end - at);
          at += some;
          bodyLeft -= some;
          if (bodyLeft == 0) {
            state = State.LENGTHS;
          }
        }
        case CHECKSUM -> {
          checksum = checksum << Byte.SIZE | bytes[at++] & 0xFF;
          if (--checksumBytesLeft == 0) {
            endSegment(position + at - offset);
            summed = at;
          }
        }
        case DONE -> throw damaged("bytes follow the last segment");
      }
    }
    if (state == State.LENGTHS || state == State.BODY) {
      crc.update(bytes, summed, end - summed);
    }
    position += length;
  }

  private void lengthByte(byte value) throws DamagedSegmentException {
    if (numberBytesLeft == 0) {
      int size = WritableUtils.decodeVIntSize(value);
      if (size > VINT_BYTES_MAX) {
        throw damaged("a length takes " + size + " bytes");
      }
      if (size == 1) {
        length(value);
        return;
      }
      negative = WritableUtils.isNegativeVInt(value);
      number = 0;
      numberBytesLeft = size - 1;
      return;
    }
    number = number << Byte.SIZE | value & 0xFF;
    if (--numberBytesLeft == 0) {
      length(negative ? ~number : number);
    }
  }

  private void length(long value) throws DamagedSegmentException {
    if (!keyLengthKnown) {
      keyLength = value;
      keyLengthKnown = true;
      return;
    }
    keyLengthKnown = false;
    if (keyLength == END_LENGTH_VALUE && value == END_LENGTH_VALUE) {
      state = State.CHECKSUM;
      checksumBytesLeft = Segment.CRC_LENGTH;
      return;
    }
    if (keyLength < 0 || value < 0 || keyLength > Integer.MAX_VALUE || value > Integer.MAX_VALUE) {
      throw damaged("a record with a key of " + keyLength + " bytes and a value of " + value);
    }
    records++;
    bodyLeft = keyLength + value;
    if (bodyLeft > 0) {
      state = State.BODY;
    }
  }

  private void endSegment(long end) throws DamagedSegmentException {
    if (checksum != (int) crc.getValue()) {
      throw damaged("its checksum doesn't match");
    }
    partLengths[partition] = end - segmentStart;
    partition++;
    segmentStart = end;
    crc.reset();
    state = partition == partLengths.length ? State.DONE : State.LENGTHS;
  }

  private DamagedSegmentException damaged(String what) {
    return new DamagedSegmentException(
        "segment " + partition + " of a spill, at byte " + segmentStart + ": " + what);
  }

  /**
   * Ends the spill, which must be as its maker says.
   *
   * @param expectedRecords the records of all segments
   * @param expectedParts the bytes of each segment
   * @throws DamagedSegmentException if bytes are missing, or if it is another spill
   */
  public void end(long expectedRecords, long[] expectedParts) throws DamagedSegmentException {
    if (state != State.DONE) {
      throw damaged("it ends after " + (position - segmentStart) + " bytes");
    }
    if (records != expectedRecords || !Arrays.equals(partLengths, expectedParts)) {
      throw new DamagedSegmentException(
          "a spill of "
              + records
              + " records and "
              + position
              + " bytes has other records or segments than its maker says");
    }
  }

  /** Records so far. */
  public long records() {
    return records;
  }

  /** Bytes so far. */
  public long bytes() {
    return position;
  }
}
