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
 * Merges segments to the bytes of one segment, which nobody wrote: its records in order, the end
 * marker and a checksum made anew. Records with equal keys come in the order of the segments.
 *
 * <p>The lengths of the result are known before the first byte ({@link #rawLength}, {@link
 * #partLength}). The checksum of every segment is verified before the result's own is handed out,
 * so a receiver that got all bytes got right ones; a merge that finds damage throws, and must not
 * be read further.
 *
 * <p>The order is kept by a tree of losers: each inner node holds the cursor that lost there, and
 * above the root stands the winner. When the winner moves on, only the path from its leaf is played
 * again.
 *
 * <pre>
 *            winner
 *           tree[1]
 *       tree[2]  tree[3]
 *       c0  c1   c2  c3        leaf of cursor i: node k + i
 * </pre>
 */
public final class SegmentMerge implements Closeable {
  /** The least buffer for a segment in bytes: the size of a page, below which reads only cost. */
  private static final int BUFFER_BYTES_MIN = 4 << 10;

  private static final int SKIP_BUFFER_BYTES = 64 << 10;

  /** Opens a spill for reading; a service can check there whose file it is. */
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
   * Opens all segments.
   *
   * @param memoryBytes what the buffers may take together; a key larger than its segment's share
   *     takes its own size instead
   * @throws IOException if a file can't be opened or is damaged, or if there are more segments than
   *     the memory has pages
   */
  public SegmentMerge(KeyOrder order, List<Segment> segments, int memoryBytes) throws IOException {
    this(order, segments, memoryBytes, file -> new RandomAccessFile(file.toFile(), "r"));
  }

  /** The same, with files opened by {@code opener}. */
  public SegmentMerge(KeyOrder order, List<Segment> segments, int memoryBytes, Opener opener)
      throws IOException {
    List<Segment> filled =
        segments.stream().filter(s -> s.partLength() > Segment.EMPTY_PART_LENGTH).toList();
    int share = filled.isEmpty() ? memoryBytes : memoryBytes / filled.size();
    if (memoryBytes < leastMemory(filled.size())) {
      throw new IOException(
          "merging "
              + filled.size()
              + " segments needs at least "
              + leastMemory(filled.size())
              + " bytes of memory, not "
              + memoryBytes);
    }
    verifyEmpty(order, segments, opener);
    List<Cursor> opened = new ArrayList<>(filled.size());
    try {
      for (Segment segment : filled) {
        Cursor cursor = new Cursor(segment, order, share, opener);
        opened.add(cursor);
        cursor.next();
      }
      cursors = opened.toArray(new Cursor[0]);
      tree = new int[Math.max(1, cursors.length)];
      tree[0] = cursors.length == 0 ? -1 : play(1);
    } catch (IOException | RuntimeException e) {
      closeAll(opened, e);
      throw e;
    }
  }

  /** The least memory in bytes with which so many segments can be merged. */
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

  /** Bytes of the merged segment in all, as {@link #read} hands them out. */
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
   * @return how many, at least 1 unless {@code length} is 0; -1 at the end
   * @throws DamagedSegmentException if a segment isn't what was written
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
   * Passes over the next bytes of the merged segment: what follows is what a reader would get who
   * had read so many. Everything is merged and verified all the same.
   *
   * @throws IOException if the segment ends before
   */
  public void skip(long bytes) throws IOException {
    byte[] passed = new byte[(int) Math.min(bytes, SKIP_BUFFER_BYTES)];
    for (long left = bytes; left > 0; ) {
      int count = read(passed, 0, (int) Math.min(left, passed.length));
      if (count < 0) {
        throw new IOException(
            "cannot skip " + bytes + " bytes, the merged segment ends " + left + " before");
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

  /** Plays the first match at a node and below it: the loser stays, the winner goes up. */
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

  /** The cursor moved: plays its matches up to the root again. */
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

  /** An empty segment takes no part in the merge, but its checksum counts like any other. */
  private static void verifyEmpty(KeyOrder order, List<Segment> segments, Opener opener)
      throws IOException {
    for (Segment segment : segments) {
      if (segment.partLength() == Segment.EMPTY_PART_LENGTH) {
        try (Cursor cursor = new Cursor(segment, order, BUFFER_BYTES_MIN, opener)) {
          cursor.next();
        }
      }
    }
  }

  private static void closeAll(List<Cursor> cursors, Exception cause) {
    for (Cursor cursor : cursors) {
      try {
        cursor.close();
      } catch (IOException e) {
        cause.addSuppressed(e);
      }
    }
  }

  /** Closes all files; those of segments that ended are closed already. */
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
