package io.merganser.hadoop.service;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.stream.ChunkedInput;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Deque;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One merged map output on its way to a connection.
 *
 * <pre>
 *   merge (process, or Java) --produce()--> queue of chunks --readChunk()--> Netty
 *          a thread of the service          at most QUEUE_MAX             the event loop
 * </pre>
 *
 * <p>{@link #produce} makes chunks until the queue is full and then leaves its thread. Taking a
 * chunk starts it again. The last chunk of the map output is queued only if the checksums of all
 * spills were right, so a reducer never gets a whole map output with an error in it. {@link
 * TakeoverMerge} makes the bytes.
 */
public final class MergeStream implements ChunkedInput<ByteBuf> {
  private static final Logger LOG = LoggerFactory.getLogger(MergeStream.class);

  /** Most chunks that wait for the connection. */
  static final int QUEUE_MAX = 3;

  private final MergeService service;
  private final Batch batch;
  private final OutputCatalog.Deferred output;
  private final ByteBufAllocator allocator;
  private final Runnable resume;

  // Guarded by the batch.
  private final Deque<ByteBuf> queue = new ArrayDeque<>();
  private long taken;
  private boolean running;
  private boolean closed;
  private Throwable failure;

  /** Bytes queued or taken. Written with the batch's monitor, by the thread that runs if any. */
  private long produced;

  /** Used by the thread that runs; if none runs, with the batch's monitor. */
  private final TakeoverMerge merge;

  MergeStream(
      MergeService service,
      Batch batch,
      OutputCatalog.Deferred output,
      ByteBufAllocator allocator,
      Runnable resume) {
    this.service = service;
    this.batch = batch;
    this.output = output;
    this.allocator = allocator;
    this.resume = resume;
    this.merge = new TakeoverMerge(service, batch, output, this::isClosed);
  }

  private boolean isClosed() {
    synchronized (batch) {
      return closed;
    }
  }

  @Override
  public ByteBuf readChunk(ByteBufAllocator ignored) throws Exception {
    ByteBuf chunk;
    boolean start;
    synchronized (batch) {
      if (failure != null) {
        throw new IOException(failure.getMessage(), failure);
      }
      chunk = queue.pollFirst();
      if (chunk != null) {
        taken += chunk.readableBytes();
        batch.moved();
      }
      start = !running && !closed && produced < output.length() && queue.size() < QUEUE_MAX;
      running |= start;
    }
    if (start) {
      batch.run(this);
    }
    return chunk;
  }

  @Override
  @Deprecated
  public ByteBuf readChunk(ChannelHandlerContext context) throws Exception {
    return readChunk(context.alloc());
  }

  @Override
  public boolean isEndOfInput() {
    synchronized (batch) {
      return taken == output.length();
    }
  }

  @Override
  public long length() {
    return output.length();
  }

  @Override
  public long progress() {
    synchronized (batch) {
      return taken;
    }
  }

  /** Ends the merge: at its end, or because the rest is not wanted. */
  @Override
  public void close() {
    synchronized (batch) {
      if (closed) {
        return;
      }
      closed = true;
      dropQueue();
      if (running) {
        merge.abort();
      } else {
        merge.close();
      }
    }
    batch.settle();
  }

  /** Whether a thread makes chunks, or will. Called with the batch's monitor. */
  boolean running() {
    return running;
  }

  /** Notes that no thread will make chunks after all. Called with the batch's monitor. */
  void stopped() {
    running = false;
    merge.close();
  }

  /**
   * Drops the chunks in the queue and closes the merge. The next {@link #readChunk} begins again at
   * the byte that is wanted. Called with the batch's monitor.
   *
   * @return false if the merge runs, so that the reducer isn't the slow side
   */
  boolean putOff() {
    if (running) {
      return false;
    }
    if (!queue.isEmpty()) {
      dropQueue();
      produced = taken;
      merge.forgetChecksum();
    }
    merge.close();
    return true;
  }

  /** Makes chunks until the queue is full. Run by a thread of the service, one at a time. */
  void produce() {
    boolean more = true;
    while (more) {
      ByteBuf chunk = null;
      try {
        synchronized (batch) {
          more = !closed && failure == null && produced < output.length();
          more &= queue.size() < QUEUE_MAX;
          if (!more) {
            running = false;
            if (closed) {
              merge.close();
            }
          }
        }
        if (more) {
          chunk = merge.chunk(allocator, produced);
          synchronized (batch) {
            if (!closed) {
              produced += chunk.readableBytes();
              queue.addLast(chunk);
              service.metrics().mergedBytes.incr(chunk.readableBytes());
              chunk = null;
            }
          }
          resume.run();
        }
      } catch (Throwable e) {
        // Errors too: a thread that ends silently would leave its connection open for ever.
        more = false;
        fail(e);
      } finally {
        if (chunk != null) {
          chunk.release();
        }
      }
    }
    batch.settle();
  }

  /** Fails, since no thread will make the rest. Called without the monitor. */
  void reject(IOException reason) {
    fail(reason);
    batch.settle();
  }

  private void fail(Throwable e) {
    boolean wanted;
    synchronized (batch) {
      running = false;
      wanted = !closed;
      failure = e;
      dropQueue();
      merge.close();
    }
    if (wanted) {
      service.countUnsent();
      LOG.error(
          "Closing the connection that fetches {}: {}", output.name(), TakeoverMerge.reason(e));
      LOG.debug("{} failed", output.name(), e);
      resume.run();
    }
  }

  private void dropQueue() {
    queue.forEach(ByteBuf::release);
    queue.clear();
  }
}
