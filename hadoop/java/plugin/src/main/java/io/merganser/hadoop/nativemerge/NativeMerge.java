package io.merganser.hadoop.nativemerge;

import io.merganser.hadoop.order.KeyOrder;
import io.merganser.hadoop.segment.Segment;
import java.io.Closeable;
import java.io.IOException;
import java.lang.ref.Cleaner;
import java.util.List;
import java.util.Objects;

/**
 * The merge of IFile segments by the native library. It makes the same bytes as {@link
 * io.merganser.hadoop.segment.SegmentMerge}. It holds open files and memory outside the heap until
 * it is closed; a merge that is never closed is freed by the garbage collector.
 *
 * <p>{@link NativeLibrary#whyNot} must have been called before.
 */
public final class NativeMerge implements Closeable {
  private static final Cleaner CLEANER = Cleaner.create();

  /**
   * The part that the cleaner may refer to: the merge outside the heap, not the object that owns
   * it.
   */
  private static final class Handle implements Runnable {
    private final long merge;

    Handle(long merge) {
      this.merge = merge;
    }

    @Override
    public void run() {
      nativeClose(merge);
    }
  }

  private final long merge;
  private final Cleaner.Cleanable cleanable;
  private boolean closed;

  /**
   * Opens the files of the segments and starts the merge.
   *
   * @param order the order of keys; equal keys keep the order of {@code segments}
   * @param memoryBytes the memory that the merge may take outside the heap
   * @throws IOException if a file can't be read, is damaged, or the memory is too little
   */
  public NativeMerge(KeyOrder order, List<Segment> segments, long memoryBytes) throws IOException {
    String[] files = new String[segments.size()];
    long[] places = new long[3 * files.length];
    for (int index = 0; index < files.length; index++) {
      Segment segment = segments.get(index);
      files[index] = segment.file().toString();
      places[3 * index] = segment.offset();
      places[3 * index + 1] = segment.rawLength();
      places[3 * index + 2] = segment.partLength();
    }
    merge = nativeOpen(order.description(), files, places, memoryBytes);
    cleanable = CLEANER.register(this, new Handle(merge));
  }

  /**
   * Reads the next bytes of the merged segment, which include the end marker and the checksum.
   *
   * @return the number of bytes, or -1 at the end
   * @throws IOException if a segment is damaged or can't be read; the message names it, and every
   *     later call fails too
   */
  public synchronized int read(byte[] into, int offset, int length) throws IOException {
    Objects.checkFromIndexSize(offset, length, into.length);
    if (closed) {
      throw new IOException("the native merge is closed");
    }
    return length == 0 ? 0 : nativeRead(merge, into, offset, length);
  }

  @Override
  public synchronized void close() {
    closed = true;
    cleanable.clean();
  }

  private static native long nativeOpen(
      String order, String[] files, long[] places, long memoryBytes) throws IOException;

  private static native int nativeRead(long merge, byte[] into, int offset, int length)
      throws IOException;

  private static native void nativeClose(long merge);
}
