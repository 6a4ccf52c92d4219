package io.merganser.hadoop.service;

import io.netty.buffer.ByteBuf;
import java.io.Closeable;
import java.io.IOException;

/** The bytes of one merged segment, from some offset to its end, as somebody makes them. */
interface MergedBytes extends Closeable {
  /**
   * Appends at least one byte and at most {@code into.maxWritableBytes()}.
   *
   * @throws SpillUnreadableException when the spills themselves are at fault, and no other merge of
   *     them would do better
   * @throws IOException when this merge can't go on; all bytes that were appended are right
   */
  void read(ByteBuf into) throws IOException;

  /**
   * Called when all bytes were read: makes sure that nothing follows and that every spill's
   * checksum was right.
   */
  void finish() throws IOException;

  /** Makes a {@link #read} or {@link #finish} that waits fail soon. Called by any thread. */
  void abort();
}
