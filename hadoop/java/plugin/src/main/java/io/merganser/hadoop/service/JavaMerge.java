package io.merganser.hadoop.service;

import io.merganser.hadoop.segment.SegmentMerge;
import io.netty.buffer.ByteBuf;
import java.io.IOException;
import org.apache.hadoop.io.SecureIOUtils;

/** A merge in this process, in Java. */
final class JavaMerge implements MergedBytes {
  /** Bytes that are skipped between two checks whether the merge was aborted. */
  private static final int STEP_BYTES = 1 << 20;

  private final OutputCatalog.Deferred output;
  private final PageCache pageCache;
  private final SegmentMerge merge;
  private final byte[] buffer;
  private volatile boolean aborted;

  /**
   * @param memoryBytes the memory of all segments together
   * @param chunkBytes most bytes of one {@link #read}
   */
  JavaMerge(OutputCatalog.Deferred output, int memoryBytes, int chunkBytes, PageCache pageCache)
      throws IOException {
    this.output = output;
    this.pageCache = pageCache;
    buffer = new byte[chunkBytes];
    merge =
        SegmentMerge.withinMemory(
            output.order(),
            output.segments(),
            memoryBytes,
            file -> SecureIOUtils.openForRandomRead(file.toFile(), "r", output.user(), null));
  }

  /** Merges the first bytes and drops them. */
  void skip(long bytes) throws IOException {
    for (long left = bytes; left > 0; ) {
      if (aborted) {
        throw new IOException("the merge was aborted: its bytes are no longer wanted");
      }
      long step = Math.min(left, STEP_BYTES);
      merge.skip(step);
      left -= step;
    }
  }

  @Override
  public void read(ByteBuf into) throws IOException {
    int read = merge.read(buffer, 0, Math.min(buffer.length, into.maxWritableBytes()));
    if (read < 0) {
      throw new IOException("the merge ended before its length");
    }
    into.writeBytes(buffer, 0, read);
  }

  @Override
  public void finish() throws IOException {
    if (merge.read(buffer, 0, 1) >= 0) {
      throw new IOException("the merge is longer than its length");
    }
    pageCache.forget(output);
  }

  @Override
  public void abort() {
    aborted = true;
  }

  @Override
  public void close() throws IOException {
    merge.close();
  }
}
