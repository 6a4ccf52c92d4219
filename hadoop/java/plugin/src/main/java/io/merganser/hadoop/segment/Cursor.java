package io.merganser.hadoop.segment;

import io.merganser.hadoop.order.KeyOrder;
import io.merganser.hadoop.order.MalformedKeyException;
import java.io.Closeable;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.util.zip.CRC32;

/**
 * Reads one segment, record by record.
 *
 * <pre>
 *   buffer:   | taken | head | key | value ...      | free |
 *                     ^recordStart                  ^filled
 * </pre>
 *
 * <p>The buffer always holds a record's head (two lengths) and key whole, so that keys can be
 * compared. The value passes through in pieces. For a key that doesn't fit, a larger buffer takes
 * the place of the first one until the key has been merged; {@link LongKeys} bounds its size.
 */
final class Cursor implements Closeable {
  private static final int HEAD_MAX = 10;

  /** The largest head and key that an array holds. */
  private static final long KEY_END_MAX = Integer.MAX_VALUE - 8;

  private final Segment segment;
  private final KeyOrder order;
  private final RandomAccessFile file;
  private final LongKeys longKeys;
  private final int bufferBytes;
  private final CRC32 crc = new CRC32();
  private byte[] buffer;

  /** Bytes of the buffer that are taken from {@link #longKeys}: all, or 0 for a first buffer. */
  private int longBytes;

  private int filled;
  private int position;

  /** Bytes of the segment that were read into the buffer so far; its checksum is not counted. */
  private long fetched;

  private long recordLeft;
  private int keyStart;
  private int keyLength;
  private long prefix;

  /**
   * Opens the segment; {@link #next} then moves to the first record.
   *
   * @param bufferBytes the size of the buffer, unless the segment is smaller
   */
  Cursor(
      Segment segment,
      KeyOrder order,
      int bufferBytes,
      LongKeys longKeys,
      SegmentMerge.Opener opener)
      throws IOException {
    this.segment = segment;
    this.order = order;
    this.longKeys = longKeys;
    this.bufferBytes = bufferBytes(segment, bufferBytes);
    this.file = opener.open(segment.file());
    try {
      long end = segment.offset() + segment.partLength();
      if (file.length() < end) {
        throw damaged("the file ends at " + file.length() + ", the segment at " + end);
      }
      file.seek(segment.offset());
      buffer = new byte[this.bufferBytes];
    } catch (Throwable e) {
      file.close();
      throw e;
    }
  }

  /** The size of the buffer of a segment that may have {@code most} bytes. */
  static int bufferBytes(Segment segment, int most) {
    return (int) Math.min(most, segment.rawLength());
  }

  /**
   * Moves to the next record. All bytes of the record before it must have been taken.
   *
   * @return false at the end of the segment, if its checksum was right
   */
  boolean next() throws IOException {
    assert recordLeft == 0;
    long left = segment.rawLength() - fetched + (filled - position);
    long payload = left - Segment.END_LENGTH;
    if (payload == 0) {
      finish();
      return false;
    }
    require((int) Math.min(HEAD_MAX, left));
    int at = position;
    int keySize = vintSize(at);
    long key = readVInt(at, keySize);
    at += keySize;
    int valueSize = vintSize(at);
    long value = readVInt(at, valueSize);
    int head = keySize + valueSize;
    if (key < 0 || value < 0 || head + key + value > payload || head + key > KEY_END_MAX) {
      throw damaged(
          "a record at "
              + (segment.rawLength() - left)
              + " claims a key of "
              + key
              + " bytes and a value of "
              + value
              + ", but only "
              + payload
              + " bytes are left");
    }
    require((int) (head + key));
    recordLeft = head + key + value;
    keyStart = position + head;
    keyLength = (int) key;
    try {
      prefix = order.prefix(buffer, keyStart, keyLength);
    } catch (MalformedKeyException e) {
      throw damaged(e.getMessage());
    }
    return true;
  }

  /** Whether this record comes before the other's; of equal ones this, if {@code firstIfEqual}. */
  boolean before(Cursor other, boolean firstIfEqual) throws IOException {
    if (prefix != other.prefix) {
      return Long.compareUnsigned(prefix, other.prefix) < 0;
    }
    try {
      int compared =
          order.compare(buffer, keyStart, keyLength, other.buffer, other.keyStart, other.keyLength);
      return compared < 0 || compared == 0 && firstIfEqual;
    } catch (MalformedKeyException e) {
      throw damaged(e.getMessage() + ", or its counterpart in " + other.segment.file());
    }
  }

  /** Bytes of the record that have not been taken yet. */
  long recordLeft() {
    return recordLeft;
  }

  /** Copies out the next bytes of the record: at least one, at most {@code length}. */
  int take(byte[] into, int offset, int length) throws IOException {
    if (position == filled) {
      startBuffer();
      fill(1);
    }
    int count = (int) Math.min(Math.min(length, recordLeft), filled - position);
    System.arraycopy(buffer, position, into, offset, count);
    position += count;
    recordLeft -= count;
    return count;
  }

  /** Makes sure that the buffer holds {@code bytes} bytes from {@code position} on. */
  private void require(int bytes) throws IOException {
    if (filled - position >= bytes) {
      return;
    }
    if (position == filled) {
      startBuffer();
    }
    byte[] target = bytes > buffer.length ? longBuffer(bytes) : buffer;
    System.arraycopy(buffer, position, target, 0, filled - position);
    if (target != buffer) {
      longKeys.giveBack(longBytes);
      longBytes = bytes;
      buffer = target;
    }
    filled -= position;
    position = 0;
    fill(bytes - filled);
  }

  /** Starts again with an empty buffer, of the first size if a long key had enlarged it. */
  private void startBuffer() {
    position = 0;
    filled = 0;
    if (longBytes > 0) {
      buffer = new byte[bufferBytes];
      longKeys.giveBack(longBytes);
      longBytes = 0;
    }
  }

  private byte[] longBuffer(int bytes) throws IOException {
    if (!longKeys.take(bytes)) {
      throw damaged(
          "a key needs "
              + bytes
              + " bytes of memory, and the merge has only "
              + longKeys.freeBytes()
              + " for long keys");
    }
    return new byte[bytes];
  }

  /** Appends at least {@code least} bytes to the buffer, and more if they fit. */
  private void fill(int least) throws IOException {
    int want = (int) Math.min(buffer.length - filled, segment.rawLength() - fetched);
    int got = 0;
    while (got < least) {
      int count = file.read(buffer, filled, want - got);
      if (count <= 0) {
        throw damaged("the file was cut off while it was read");
      }
      crc.update(buffer, filled, count);
      filled += count;
      got += count;
      fetched += count;
    }
  }

  private void finish() throws IOException {
    require(Segment.END_LENGTH);
    if (buffer[position] != -1 || buffer[position + 1] != -1) {
      throw damaged("its end marker is missing");
    }
    byte[] stored = new byte[Segment.CRC_LENGTH];
    file.readFully(stored);
    int expected =
        (stored[0] & 0xFF) << 24
            | (stored[1] & 0xFF) << 16
            | (stored[2] & 0xFF) << 8
            | (stored[3] & 0xFF);
    if (expected != (int) crc.getValue()) {
      throw damaged(
          String.format(
              "its checksum is %08x, the bytes give %08x", expected, (int) crc.getValue()));
    }
    close();
    buffer = null;
    longKeys.giveBack(longBytes);
    longBytes = 0;
  }

  private int vintSize(int at) throws IOException {
    if (at >= filled) {
      throw damaged("a record's head is cut off");
    }
    byte first = buffer[at];
    int size = first >= -112 ? 1 : first >= -120 ? -111 - first : -119 - first;
    if (size > 5 || at + size > filled) {
      throw damaged("a record's head holds no length");
    }
    return size;
  }

  /** The number in {@code size} bytes at {@code at}; negative if no length can be that number. */
  private long readVInt(int at, int size) {
    byte first = buffer[at];
    if (size == 1) {
      return first;
    }
    long value = 0;
    for (int i = 1; i < size; i++) {
      value = value << 8 | (buffer[at + i] & 0xFF);
    }
    return first < -120 ? ~value : value > Integer.MAX_VALUE ? -1 : value;
  }

  private DamagedSegmentException damaged(String what) {
    return new DamagedSegmentException(segment, what);
  }

  @Override
  public void close() throws IOException {
    file.close();
  }
}
