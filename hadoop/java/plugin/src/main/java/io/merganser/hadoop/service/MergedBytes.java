package io.merganser.hadoop.service;

import io.netty.buffer.ByteBuf;
import java.io.Closeable;
import java.io.IOException;

/** The bytes of one merged segment, from some offset to its end, while a merge makes them. */
interface MergedBytes extends Closeable {
  /**
   * Appends at least one byte and at most {@code into.maxWritableBytes()}.
   *
   * @throws SpillUnreadableException if the spills are the cause, so that every merge of them fails
   * @throws IOException if this merge can't continue; all bytes that were appended are right
   */
  void read(ByteBuf into) throws IOException;

  /**
   * Checks, after all bytes were read, that nothing follows and that the checksum of every spill
   * was right.
   */
  void finish() throws IOException;

  /** Makes a {@link #read} or {@link #finish} that waits fail soon. Any thread may call it. */
  void abort();
}
