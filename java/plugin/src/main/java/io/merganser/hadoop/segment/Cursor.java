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
 * <p>A record's head (two lengths) and key lie in the buffer as a whole, so that keys can be
 * compared; its value passes through in pieces. The buffer only grows for a key that is larger.
 */
final class Cursor implements Closeable {
  private static final int HEAD_MAX = 10;

  /** The largest head and key that an array holds. */
  private static final long KEY_END_MAX = Integer.MAX_VALUE - 8;

  private final Segment segment;
  private final KeyOrder order;
  private final RandomAccessFile file;
  private final CRC32 crc = new CRC32();
  private byte[] buffer;
  private int filled;
  private int position;

  /** Bytes of the segment before the buffer's end, the checksum not counted. */
  private long fetched;

  private long recordLeft;
  private int keyStart;
  private int keyLength;
  private long prefix;

  /** Opens the segment and reads its checksum; {@link #next} then stands on the first record. */
  Cursor(Segment segment, KeyOrder order, int bufferBytes, SegmentMerge.Opener opener)
      throws IOException {
    this.segment = segment;
    this.order = order;
    this.file = opener.open(segment.file());
    try {
      long end = segment.offset() + segment.partLength();
      if (file.length() < end) {
        throw damaged("the file ends at " + file.length() + ", the segment at " + end);
      }
      file.seek(segment.offset());
    } catch (IOException | RuntimeException e) {
      file.close();
      throw e;
    }
    this.buffer = new byte[(int) Math.min(bufferBytes, segment.rawLength())];
  }

  /**
   * Goes to the next record, whose predecessor was taken as a whole.
   *
   * @return false at the end, where the checksum was right
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
              + " says "
              + key
              + " bytes of key and "
              + value
              + " of value where "
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

  /** Whether this cursor's record comes before the other's; equal ones in the order of cursors. */
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

  /** Bytes of the record that were not taken yet. */
  long recordLeft() {
    return recordLeft;
  }

  /** Takes up to {@code length} bytes of the record, at least one. */
  int take(byte[] into, int offset, int length) throws IOException {
    if (position == filled) {
      position = 0;
      filled = 0;
      fill(1);
    }
    int count = (int) Math.min(Math.min(length, recordLeft), filled - position);
    System.arraycopy(buffer, position, into, offset, count);
    position += count;
    recordLeft -= count;
    return count;
  }

  /** Makes {@code bytes} bytes from {@code position} on lie in the buffer. */
  private void require(int bytes) throws IOException {
    if (filled - position >= bytes) {
      return;
    }
    byte[] target = bytes > buffer.length ? new byte[bytes] : buffer;
    System.arraycopy(buffer, position, target, 0, filled - position);
    buffer = target;
    filled -= position;
    position = 0;
    fill(bytes - filled);
  }

  /** Reads at least {@code least} bytes behind the filled part, and what else fits. */
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
      throw damaged("the marker of its end is missing");
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

  /** The number of {@code size} bytes at {@code at}; none that a length could be is negative. */
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
