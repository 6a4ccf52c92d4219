package io.merganser.hadoop.service;

import io.merganser.hadoop.segment.SegmentMerge;
import io.netty.buffer.ByteBuf;
import java.io.IOException;
import org.apache.hadoop.io.SecureIOUtils;

/** The merge in this process. */
final class JavaMerge implements MergedBytes {
  /** Bytes between two looks at whether anybody still wants the rest. */
  private static final int STEP_BYTES = 1 << 20;

  private final OutputCatalog.Deferred output;
  private final PageCache pageCache;
  private final SegmentMerge merge;
  private final byte[] buffer;
  private volatile boolean aborted;

  /**
   * @param chunkBytes most bytes of one {@link #read}
   */
  JavaMerge(OutputCatalog.Deferred output, int memoryBytes, int chunkBytes, PageCache pageCache)
      throws IOException {
    this.output = output;
    this.pageCache = pageCache;
    merge =
        new SegmentMerge(
            output.order(),
            output.segments(),
            memoryBytes,
            file -> SecureIOUtils.openForRandomRead(file.toFile(), "r", output.user(), null));
    buffer = new byte[chunkBytes];
  }

  /** Merges the first bytes without handing them out. */
  void skip(long bytes) throws IOException {
    for (long left = bytes; left > 0; ) {
      if (aborted) {
        throw new IOException("nobody reads the merge");
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
