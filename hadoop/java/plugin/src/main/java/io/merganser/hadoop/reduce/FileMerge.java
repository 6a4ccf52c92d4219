package io.merganser.hadoop.reduce;

import com.sun.management.UnixOperatingSystemMXBean;
import io.merganser.hadoop.nativemerge.NativeMerge;
import io.merganser.hadoop.order.KeyOrder;
import io.merganser.hadoop.segment.Segment;
import io.merganser.hadoop.segment.SegmentMerge;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.util.List;

/** The merge of fetched files. It removes the files when it is closed. */
public final class FileMerge implements MergedRecords.Source {
  /** The least buffer for a file. With smaller ones a disk spends its time on seeking. */
  private static final int BYTES_PER_FILE = 16 << 10;

  private final MergedRecords.Source merge;
  private final List<Segment> files;
  private final boolean keep;

  private FileMerge(MergedRecords.Source merge, List<Segment> files, boolean keep) {
    this.merge = merge;
    this.files = files;
    this.keep = keep;
  }

  /** The most files that a merge with {@code memoryBytes} of memory should read at once. */
  public static int mostFiles(long memoryBytes) {
    return mostFiles(memoryBytes, BYTES_PER_FILE);
  }

  /** The most files for a merge that needs {@code bytesPerFile} for each file. */
  public static int mostFiles(long memoryBytes, int bytesPerFile) {
    long files = Math.min(Integer.MAX_VALUE, memoryBytes / bytesPerFile);
    // Half of the files that the process may still open: the reducer may open files too.
    return ManagementFactory.getOperatingSystemMXBean() instanceof UnixOperatingSystemMXBean unix
        ? (int) Math.min(files, freeDescriptors(unix) / 2)
        : (int) files;
  }

  private static long freeDescriptors(UnixOperatingSystemMXBean unix) {
    return unix.getMaxFileDescriptorCount() - unix.getOpenFileDescriptorCount();
  }

  /**
   * Merges with the native library, which must have been loaded.
   *
   * @param files whole files, one segment each; of equal keys, those of earlier files come first
   * @param keep whether the files stay when this is closed
   */
  public static FileMerge natively(
      KeyOrder order, List<Segment> files, int memoryBytes, boolean keep) throws IOException {
    NativeMerge merge = new NativeMerge(order, files, memoryBytes);
    return new FileMerge(
        new MergedRecords.Source() {
          @Override
          public int read(byte[] into, int offset, int length) throws IOException {
            return merge.read(into, offset, length);
          }

          @Override
          public void close() {
            merge.close();
          }
        },
        files,
        keep);
  }

  /** Merges in Java. */
  public static FileMerge inJava(KeyOrder order, List<Segment> files, int memoryBytes, boolean keep)
      throws IOException {
    SegmentMerge merge = new SegmentMerge(order, files, memoryBytes);
    return new FileMerge(
        new MergedRecords.Source() {
          @Override
          public int read(byte[] into, int offset, int length) throws IOException {
            return merge.read(into, offset, length);
          }

          @Override
          public void close() throws IOException {
            merge.close();
          }
        },
        files,
        keep);
  }

  @Override
  public int read(byte[] into, int offset, int length) throws IOException {
    return merge.read(into, offset, length);
  }

  @Override
  public void close() throws IOException {
    IOException failed = null;
    try {
      merge.close();
    } catch (IOException e) {
      failed = e;
    }
    for (Segment file : keep ? List.<Segment>of() : files) {
      try {
        Files.deleteIfExists(file.file());
      } catch (IOException e) {
        failed = failed == null ? e : failed;
      }
    }
    if (failed != null) {
      throw failed;
    }
  }
}
