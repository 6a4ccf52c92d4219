package io.merganser.hadoop.node;

import java.io.IOException;
import java.util.Arrays;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;

/**
 * The bytes behind a split that its last line needs. A split owns the line that crosses its end,
 * and a line that begins exactly there. The task reads them, because they may be in a block on
 * another machine. It reads 4 KiB first, and doubles that until a line ends.
 *
 * @param bytes what was read from the end of the split on
 * @param atEndOfFile whether the file ends with these bytes
 */
record LineTail(byte[] bytes, boolean atEndOfFile) {
  private static final int FIRST_BYTES = 4 << 10;

  /** Most bytes of a tail, as the protocol has it. */
  static final int BYTES_MAX = 4 << 20;

  private static final byte LF = '\n';
  private static final byte CR = '\r';

  /** Reads the tail of a split whose file has {@code fileLength} bytes. */
  static LineTail of(
      FileSlice split, long fileLength, Optional<byte[]> delimiter, Configuration conf)
      throws OnHostException {
    if (split.end() >= fileLength) {
      return new LineTail(new byte[0], true);
    }
    try (FSDataInputStream in = split.path().getFileSystem(conf).open(split.path())) {
      return read(in, split, fileLength, delimiter);
    } catch (IOException e) {
      throw new OnHostException(
          HostReason.HDFS_FAILED, "the line behind " + split + ": " + e.getMessage(), e);
    }
  }

  private static LineTail read(
      FSDataInputStream in, FileSlice split, long fileLength, Optional<byte[]> delimiter)
      throws IOException, OnHostException {
    long available = fileLength - split.end();
    byte[] bytes = new byte[0];
    for (int size = FIRST_BYTES; size <= BYTES_MAX; size *= 2) {
      int had = bytes.length;
      bytes = Arrays.copyOf(bytes, (int) Math.min(size, available));
      in.readFully(split.end() + had, bytes, had, bytes.length - had);
      boolean all = bytes.length == available;
      if (all || hasLine(bytes, delimiter)) {
        return new LineTail(bytes, all);
      }
    }
    throw new OnHostException(
        HostReason.LONG_LINE, "no line ends within " + BYTES_MAX + " bytes behind " + split);
  }

  /** Whether a line ends within the bytes, whatever follows them. */
  private static boolean hasLine(byte[] bytes, Optional<byte[]> delimiter) {
    if (delimiter.isPresent()) {
      return hasDelimiter(bytes, delimiter.get());
    }
    for (int i = 0; i < bytes.length; i++) {
      if (bytes[i] == LF || bytes[i] == CR && i + 1 < bytes.length) {
        return true;
      }
    }
    return false;
  }

  /**
   * Whether a whole delimiter is within the bytes. One of n bytes that begins in the first n - 1 of
   * them doesn't count: a delimiter may begin in the split and end there, and then a record follows
   * that the split owns.
   */
  private static boolean hasDelimiter(byte[] bytes, byte[] delimiter) {
    int length = delimiter.length;
    for (int i = length - 1; i + length <= bytes.length; i++) {
      if (Arrays.equals(bytes, i, i + length, delimiter, 0, length)) {
        return true;
      }
    }
    return false;
  }
}
