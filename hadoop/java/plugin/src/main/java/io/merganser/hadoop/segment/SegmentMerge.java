package io.merganser.hadoop.segment;

import io.merganser.hadoop.order.KeyOrder;
import java.io.Closeable;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.zip.CRC32;

/**
 * Merges segments into the bytes of one segment: all records in order, the end marker and a new
 * checksum. Records with equal keys come in the order of the segments.
 *
 * <p>The lengths of the result are known before its first byte ({@link #rawLength}, {@link
 * #partLength}). The merge verifies the checksum of every segment before it returns the checksum of
 * the result. So a receiver that got all bytes got the right ones. A merge that finds damage throws
 * and must not be read further.
 *
 * <p>A loser tree keeps the order: each inner node holds the cursor that lost there, and the winner
 * is above the root. When the winner moves to its next record, only the matches on the path from
 * its leaf to the root are played again.
 *
 * <pre>
 *            winner
 *           tree[1]
 *       tree[2]  tree[3]
 *       c0  c1   c2  c3        leaf of cursor i: node k + i
 * </pre>
 */
public final class SegmentMerge implements Closeable {
  /** The least buffer for a segment in bytes: a page. Smaller reads cost more and save nothing. */
  private static final int BUFFER_BYTES_MIN = 4 << 10;

  /**
   * The largest buffer for a segment in bytes where long keys are bounded: enough to keep a disk
   * streaming. The rest of the memory is for long keys.
   */
  public static final int BUFFER_BYTES_MAX = 256 << 10;

  /** Where long keys are bounded, this part of the memory at least is for them: an eighth. */
  private static final int LONG_KEYS_PART = 8;

  private static final int SKIP_BUFFER_BYTES = 64 << 10;

  /** Opens a spill for reading; a service can check the file's owner there. */
  @FunctionalInterface
  public interface Opener {
    /** Opens the file. */
    RandomAccessFile open(Path file) throws IOException;
  }

  private final Cursor[] cursors;

  /** {@code tree[0]} is the winner; a cursor's number, or -1 for one that has ended. */
  private final int[] tree;

  private final CRC32 crc = new CRC32();
  private final byte[] trailer = new byte[Segment.END_LENGTH + Segment.CRC_LENGTH];
  private int trailerAt = -1;
  private long records;

  /**
   * Opens all segments, for a reader whose memory is its own.
   *
   * @param memoryBytes the memory of all buffers together; a key that is larger than the buffer of
   *     its segment takes its own size instead
   * @throws IOException if a file can't be opened or is damaged, or if there are more segments than
   *     the memory has pages
   */
  public SegmentMerge(KeyOrder order, List<Segment> segments, int memoryBytes) throws IOException {
    this(order, segments, memoryBytes, false, file -> new RandomAccessFile(file.toFile(), "r"));
  }

  private SegmentMerge(
      KeyOrder order, List<Segment> segments, int memoryBytes, boolean bounded, Opener opener)
      throws IOException {
    List<Segment> filled =
        segments.stream().filter(s -> s.partLength() > Segment.EMPTY_PART_LENGTH).toList();
    if (memoryBytes < leastMemory(filled.size())) {
      throw new IOException(
          "merging "
              + filled.size()
              + " segments needs at least "
              + leastMemory(filled.size())
              + " bytes of memory, not "
              + memoryBytes);
    }
    int share = memoryBytes / Math.max(1, filled.size());
    LongKeys longKeys = LongKeys.unbounded();
    if (bounded) {
      share = share - share / LONG_KEYS_PART;
      share = Math.max(BUFFER_BYTES_MIN, Math.min(share, BUFFER_BYTES_MAX));
      longKeys = LongKeys.within(memoryBytes - buffers(filled, share));
    }
    verifyEmpty(order, segments, opener);
    List<Cursor> opened = new ArrayList<>(filled.size());
    try {
      for (Segment segment : filled) {
        Cursor cursor = new Cursor(segment, order, share, longKeys, opener);
        opened.add(cursor);
        cursor.next();
      }
      cursors = opened.toArray(new Cursor[0]);
      tree = new int[Math.max(1, cursors.length)];
      tree[0] = cursors.length == 0 ? -1 : play(1);
    } catch (Throwable e) {
      // Errors too: without memory for a buffer the files must still be closed.
      closeAll(opened, e);
      throw e;
    }
  }

  /**
   * Opens all segments, for a service that merges files of others and has granted a merge its
   * memory. A damaged or hostile file can't make the merge take more.
   *
   * @param memoryBytes the memory of all buffers together; a key that doesn't fit into it counts as
   *     damage
   * @param opener opens the files
   * @throws IOException as the constructor does
   */
  public static SegmentMerge withinMemory(
      KeyOrder order, List<Segment> segments, int memoryBytes, Opener opener) throws IOException {
    return new SegmentMerge(order, segments, memoryBytes, true, opener);
  }

  private static long buffers(List<Segment> segments, int share) {
    return segments.stream().mapToLong(segment -> Cursor.bufferBytes(segment, share)).sum();
  }

  /** The least memory, in bytes, for a merge of {@code segments} segments. */
  public static long leastMemory(int segments) {
    return (long) segments * BUFFER_BYTES_MIN;
  }

  /** Bytes of the merged records and the end marker. */
  public static long rawLength(List<Segment> segments) {
    long length = Segment.END_LENGTH;
    for (Segment segment : segments) {
      length = Math.addExact(length, segment.rawLength() - Segment.END_LENGTH);
    }
    return length;
  }

  /** Bytes of the whole merged segment, which {@link #read} returns. */
  public static long partLength(List<Segment> segments) {
    return Math.addExact(rawLength(segments), Segment.CRC_LENGTH);
  }

  /** Records merged so far. */
  public long records() {
    return records;
  }

  /**
   * Reads the next bytes of the merged segment.
   *
   * @return the number of bytes, at least 1 unless {@code length} is 0; -1 at the end
   * @throws DamagedSegmentException if a segment isn't as it was written
   */
  public int read(byte[] into, int offset, int length) throws IOException {
    Objects.checkFromIndexSize(offset, length, into.length);
    int done = 0;
    while (done < length && tree[0] >= 0) {
      Cursor winner = cursors[tree[0]];
      done += winner.take(into, offset + done, length - done);
      if (winner.recordLeft() == 0) {
        records++;
        replay(tree[0], winner.next());
      }
    }
    crc.update(into, offset, done);
    if (done < length) {
      done += takeTrailer(into, offset + done, length - done);
    }
    return done == 0 && length > 0 ? -1 : done;
  }

  /**
   * Skips the next bytes of the merged segment. They are merged and verified like bytes that are
   * read.
   *
   * @throws IOException if fewer bytes are left
   */
  public void skip(long bytes) throws IOException {
    byte[] passed = new byte[(int) Math.min(bytes, SKIP_BUFFER_BYTES)];
    for (long left = bytes; left > 0; ) {
      int count = read(passed, 0, (int) Math.min(left, passed.length));
      if (count < 0) {
        throw new IOException(
            "cannot skip " + bytes + " bytes, the merged segment ends " + left + " bytes earlier");
      }
      left -= count;
    }
  }

  private int takeTrailer(byte[] into, int offset, int length) {
    if (trailerAt < 0) {
      trailer[0] = -1;
      trailer[1] = -1;
      crc.update(trailer, 0, Segment.END_LENGTH);
      int sum = (int) crc.getValue();
      for (int i = 0; i < Segment.CRC_LENGTH; i++) {
        trailer[Segment.END_LENGTH + i] = (byte) (sum >>> (24 - 8 * i));
      }
      trailerAt = 0;
    }
    int count = Math.min(length, trailer.length - trailerAt);
    System.arraycopy(trailer, trailerAt, into, offset, count);
    trailerAt += count;
    return count;
  }

  /** Plays the first matches at and below a node: losers stay there; the winner is returned. */
  private int play(int node) throws IOException {
    if (node >= cursors.length) {
      return node - cursors.length;
    }
    int left = play(2 * node);
    int right = play(2 * node + 1);
    boolean leftWins = wins(left, right);
    tree[node] = leftWins ? right : left;
    return leftWins ? left : right;
  }

  /** Plays the matches of a cursor that has moved again, from its leaf to the root. */
  private void replay(int cursor, boolean alive) throws IOException {
    int winner = alive ? cursor : -1;
    for (int node = (cursor + cursors.length) / 2; node >= 1; node /= 2) {
      if (wins(tree[node], winner)) {
        int loser = winner;
        winner = tree[node];
        tree[node] = loser;
      }
    }
    tree[0] = winner;
  }

  private boolean wins(int a, int b) throws IOException {
    if (a < 0 || b < 0) {
      return a >= 0;
    }
    return cursors[a].before(cursors[b], a < b);
  }

  /** Verifies the checksums of empty segments, which take no part in the merge. */
  private static void verifyEmpty(KeyOrder order, List<Segment> segments, Opener opener)
      throws IOException {
    for (Segment segment : segments) {
      if (segment.partLength() == Segment.EMPTY_PART_LENGTH) {
        try (Cursor cursor =
            new Cursor(segment, order, BUFFER_BYTES_MIN, LongKeys.within(0), opener)) {
          cursor.next();
        }
      }
    }
  }

  private static void closeAll(List<Cursor> cursors, Throwable cause) {
    for (Cursor cursor : cursors) {
      try {
        cursor.close();
      } catch (IOException e) {
        cause.addSuppressed(e);
      }
    }
  }

  /** Closes all files that are still open. */
  @Override
  public void close() throws IOException {
    IOException failed = null;
    for (Cursor cursor : cursors) {
      try {
        cursor.close();
      } catch (IOException e) {
        failed = failed == null ? e : failed;
      }
    }
    if (failed != null) {
      throw failed;
    }
  }
}
