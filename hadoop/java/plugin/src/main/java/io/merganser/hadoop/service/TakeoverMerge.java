package io.merganser.hadoop.service;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import java.io.IOException;
import java.util.Optional;
import java.util.function.BooleanSupplier;
import java.util.zip.CRC32;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The merged bytes of one map output in chunks, made by the merge process or by Java.
 *
 * <p>If the process fails at any byte, Java merges the same spills and continues with the next
 * byte. If the process is busy, Java merges too and doesn't wait: the grant of the batch covers a
 * merge in Java, and its memory would be unused meanwhile.
 *
 * <p>Used by one thread at a time, except {@link #abort}.
 */
final class TakeoverMerge {
  private static final Logger LOG = LoggerFactory.getLogger(TakeoverMerge.class);

  private static final int CRC_BYTES = 4;

  private final MergeService service;
  private final Batch batch;
  private final OutputCatalog.Deferred output;
  private final BooleanSupplier unwanted;

  private volatile MergedBytes source;
  private boolean inProcess;
  private boolean processBegan;
  private boolean javaOnly;
  private boolean counted;

  /** The checksum of all bytes made; null if it isn't known, since some were dropped. */
  private CRC32 crc = new CRC32();

  /**
   * @param unwanted whether the rest of the bytes is no longer wanted
   */
  TakeoverMerge(
      MergeService service, Batch batch, OutputCatalog.Deferred output, BooleanSupplier unwanted) {
    this.service = service;
    this.batch = batch;
    this.output = output;
    this.unwanted = unwanted;
  }

  /**
   * Returns the next chunk, full; the last one only after all of the merge was verified.
   *
   * @param offset the offset of its first byte
   */
  ByteBuf chunk(ByteBufAllocator allocator, long offset) throws IOException {
    long rest = output.length() - offset;
    int size = (int) Math.min(service.chunkBytes(), rest);
    if (rest > size && rest - size < CRC_BYTES) {
      // The checksum at the end isn't split.
      size -= CRC_BYTES;
    }
    ByteBuf chunk = allocator.directBuffer(size, size);
    try {
      while (chunk.isWritable()) {
        attempt(chunk, offset, () -> source.read(chunk));
      }
      boolean last = size == rest;
      if (last) {
        attempt(chunk, offset, () -> source.finish());
      }
      check(chunk, last);
      if (last) {
        close();
      }
      return chunk;
    } catch (IOException | RuntimeException | Error e) {
      chunk.release();
      throw e;
    }
  }

  private interface Step {
    void run() throws IOException;
  }

  /**
   * Does one step of the merge. If the process fails in it, Java takes over.
   *
   * @param offset the offset of the chunk's first byte
   */
  private void attempt(ByteBuf chunk, long offset, Step step) throws IOException {
    if (source == null) {
      begin(offset + chunk.readableBytes());
    }
    try {
      step.run();
      processBegan |= inProcess;
      count();
    } catch (SpillUnreadableException e) {
      throw unreadable(e);
    } catch (IOException e) {
      if (unwanted.getAsBoolean()) {
        throw e;
      }
      if (!inProcess) {
        throw unreadable(e);
      }
      javaOnly = true;
      long at = offset + chunk.readableBytes();
      if (processBegan) {
        service.metrics().takeovers.incr();
        LOG.info("Java continues {} at byte {}: the merge process failed", output.name(), at);
      }
      LOG.debug("the merge process doesn't merge {}", output.name(), e);
      close();
      begin(at);
      if (at == output.length()) {
        attempt(chunk, offset, source::finish);
      }
    }
  }

  /** Notes that no merge of these spills can succeed, so that the next fetch fails at once. */
  private IOException unreadable(IOException e) {
    service.outputs().markUnreadable(output, reason(e));
    return e;
  }

  /** Opens a merge whose first byte is the one at {@code offset}. */
  private void begin(long offset) throws IOException {
    if (!javaOnly) {
      Optional<MergedBytes> merge =
          service.mergeInProcess(output, offset, batch.mergeMemory(output.segments().size()));
      if (merge.isPresent()) {
        inProcess = true;
        use(merge.get());
        return;
      }
    }
    javaOnly = true;
    inProcess = false;
    long memory = Math.min(batch.mergeMemory(output.segments().size()), Integer.MAX_VALUE);
    try {
      JavaMerge merge =
          new JavaMerge(output, (int) memory, service.chunkBytes(), service.pageCache());
      use(merge);
      merge.skip(offset);
    } catch (IOException e) {
      throw unwanted.getAsBoolean() ? e : unreadable(e);
    }
    count();
  }

  private void use(MergedBytes merge) {
    source = merge;
    if (unwanted.getAsBoolean()) {
      merge.abort();
    }
  }

  /** Counts once where the merge of this map output began. */
  private void count() {
    if (!counted) {
      counted = true;
      (inProcess ? service.metrics().mergesByProcess : service.metrics().mergesByJava).incr();
    }
  }

  /**
   * Compares the checksum at the end with the bytes that were sent. A reducer would find a
   * difference too. But if the bytes came from the process, it rests now, so that the next fetch of
   * the reducer gets the right ones.
   */
  private void check(ByteBuf chunk, boolean last) throws IOException {
    if (crc == null) {
      return;
    }
    int length = chunk.readableBytes() - (last ? CRC_BYTES : 0);
    crc.update(chunk.nioBuffer(chunk.readerIndex(), length));
    if (last && chunk.getInt(chunk.readerIndex() + length) != (int) crc.getValue()) {
      IOException wrong =
          new IOException("the merged bytes of " + output.name() + " don't match their checksum");
      if (processBegan) {
        service.distrustProcess(wrong);
      }
      throw wrong;
    }
  }

  /** Makes a step that waits fail soon. Called by any thread. */
  void abort() {
    MergedBytes used = source;
    if (used != null) {
      used.abort();
    }
  }

  /** Forgets the checksum, since bytes that were made are dropped and will be made again. */
  void forgetChecksum() {
    crc = null;
  }

  /** Closes the merge; the next chunk begins a new one. */
  void close() {
    MergedBytes done = source;
    source = null;
    if (done != null) {
      try {
        done.close();
      } catch (IOException e) {
        LOG.debug("closing the merge of {}", output.name(), e);
      }
    }
  }

  /** The message of a failure. */
  static String reason(Throwable e) {
    return e instanceof IOException && e.getMessage() != null ? e.getMessage() : e.toString();
  }
}
