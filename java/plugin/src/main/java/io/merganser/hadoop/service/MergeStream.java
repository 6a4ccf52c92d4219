package io.merganser.hadoop.service;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.stream.ChunkedInput;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Optional;
import java.util.zip.CRC32;
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
 * <p>{@link #produce} makes chunks until the queue is full and then leaves its thread; taking one
 * starts it again. A chunk that ends the map output is only queued when every spill's checksum was
 * found right, so a reducer never gets a whole map output with anything wrong in it. When the merge
 * process fails at any byte, Java merges the same spills and goes on with the next byte. A process
 * that says it is busy is not waited for either: what the batch was granted covers the merge in
 * Java, and would lie idle meanwhile.
 */
public final class MergeStream implements ChunkedInput<ByteBuf> {
  private static final Logger LOG = LoggerFactory.getLogger(MergeStream.class);

  /** Most chunks that wait for the connection. */
  static final int QUEUE_MAX = 3;

  private static final int CRC_BYTES = 4;

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

  /** Bytes queued or taken. Written by who runs, with the batch's monitor. */
  private long produced;

  // Only touched by who runs, or with the batch's monitor while nobody does; but anybody may abort.
  private volatile MergedBytes source;
  private boolean inProcess;
  private boolean processBegan;
  private boolean javaOnly;
  private boolean counted;

  /** The checksum of all bytes produced; null when it is not known, since some were dropped. */
  private CRC32 crc = new CRC32();

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

  /** Ends the merge: at its end, or since nobody wants the rest. */
  @Override
  public void close() {
    synchronized (batch) {
      if (closed) {
        return;
      }
      closed = true;
      dropQueue();
      if (running) {
        MergedBytes used = source;
        if (used != null) {
          used.abort();
        }
      } else {
        closeSource();
      }
    }
    batch.settle();
  }

  /** Whether a thread works for this, or will. Called with the batch's monitor. */
  boolean running() {
    return running;
  }

  /** No thread will work for this although one should have. Called with the batch's monitor. */
  void stopped() {
    running = false;
    closeSource();
  }

  /**
   * Drops what was made ahead and closes the merge; the next {@link #readChunk} begins again at the
   * byte that is wanted. Called with the batch's monitor.
   *
   * @return false if the merge runs, so that it is not the reducer that is slow
   */
  boolean putOff() {
    if (running) {
      return false;
    }
    if (!queue.isEmpty()) {
      dropQueue();
      produced = taken;
      crc = null;
    }
    closeSource();
    return true;
  }

  /** Makes chunks until enough wait. Run by a thread of the service, one at a time. */
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
              closeSource();
            }
          }
        }
        if (more) {
          chunk = chunk();
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

  /** No thread will make the rest. Called without the monitor. */
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
      closeSource();
    }
    if (wanted) {
      service.countUnsent();
      LOG.error("Closing the connection that fetches {}: {}", output.name(), reason(e));
      LOG.debug("{} failed", output.name(), e);
      resume.run();
    }
  }

  private static String reason(Throwable e) {
    return e instanceof IOException && e.getMessage() != null ? e.getMessage() : e.toString();
  }

  /** The next chunk, whole; the last one only when all of the merge was verified. */
  private ByteBuf chunk() throws IOException {
    long rest = output.length() - produced;
    int size = (int) Math.min(service.chunkBytes(), rest);
    if (rest > size && rest - size < CRC_BYTES) {
      // The checksum at the end is not torn apart.
      size -= CRC_BYTES;
    }
    ByteBuf chunk = allocator.directBuffer(size, size);
    try {
      while (chunk.isWritable()) {
        attempt(chunk, () -> source.read(chunk));
      }
      boolean last = size == rest;
      if (last) {
        attempt(chunk, () -> source.finish());
      }
      check(chunk, last);
      if (last) {
        closeSource();
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
   * Does one step with the merge there is, and lets Java take over when the process fails in it.
   */
  private void attempt(ByteBuf chunk, Step step) throws IOException {
    if (source == null) {
      begin(produced + chunk.readableBytes());
    }
    try {
      step.run();
      processBegan |= inProcess;
      count();
    } catch (SpillUnreadableException e) {
      throw unreadable(e);
    } catch (IOException e) {
      if (wantedNoMore()) {
        throw e;
      }
      if (!inProcess) {
        throw unreadable(e);
      }
      javaOnly = true;
      long at = produced + chunk.readableBytes();
      if (processBegan) {
        service.metrics().takeovers.incr();
        LOG.info("Java goes on with {} at byte {}: the merge process failed", output.name(), at);
      }
      LOG.debug("the merge process does not merge {}", output.name(), e);
      closeSource();
      begin(at);
      if (at == output.length()) {
        attempt(chunk, source::finish);
      }
    }
  }

  /** The spills can't be merged, whoever tries: the next fetch need not find that out again. */
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
      throw wantedNoMore() ? e : unreadable(e);
    }
    count();
  }

  private void use(MergedBytes merge) {
    source = merge;
    if (wantedNoMore()) {
      merge.abort();
    }
  }

  private boolean wantedNoMore() {
    synchronized (batch) {
      return closed;
    }
  }

  /** Counts where the merge of this map output began, once. */
  private void count() {
    if (!counted) {
      counted = true;
      (inProcess ? service.metrics().mergesByProcess : service.metrics().mergesByJava).incr();
    }
  }

  /**
   * Compares the checksum at the end with the bytes that went out. A reducer would find a
   * difference too; here the process whose bytes they were is left alone for a while, so that the
   * reducer's next fetch gets right ones.
   */
  private void check(ByteBuf chunk, boolean last) throws IOException {
    if (crc == null) {
      return;
    }
    int length = chunk.readableBytes() - (last ? CRC_BYTES : 0);
    crc.update(chunk.nioBuffer(chunk.readerIndex(), length));
    if (last && chunk.getInt(chunk.readerIndex() + length) != (int) crc.getValue()) {
      IOException wrong =
          new IOException("the merged bytes of " + output.name() + " do not match their checksum");
      if (processBegan) {
        service.distrustProcess(wrong);
      }
      throw wrong;
    }
  }

  private void dropQueue() {
    queue.forEach(ByteBuf::release);
    queue.clear();
  }

  private void closeSource() {
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
}
