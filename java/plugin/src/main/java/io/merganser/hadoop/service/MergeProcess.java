package io.merganser.hadoop.service;

import io.netty.buffer.ByteBuf;
import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The merge process beside this one, {@code merganser serve --shuffle}, as seen from here: a Unix
 * socket, requests of version 1, and a memory of when it last failed.
 *
 * <pre>
 *   request  "MGSH"  version u16  kind u16  length u32  body
 *   answer   { type u8  length u32  body } ...      until a frame "end" or "error"
 * </pre>
 *
 * <p>A process that failed is left alone for a second, then two, up to half a minute: meanwhile a
 * fetch pays one comparison for it. After that one fetch tries it, and the others wait for what
 * becomes of that.
 */
final class MergeProcess implements Closeable {
  private static final Logger LOG = LoggerFactory.getLogger(MergeProcess.class);

  private static final byte[] MAGIC = {'M', 'G', 'S', 'H'};
  private static final int VERSION = 1;
  private static final int KIND_MERGE = 1;
  private static final int BODY_BYTES_MAX = 1 << 20;
  private static final int TEXT_BYTES_MAX = 0xFFFF;
  private static final int FRAME_BYTES_MAX = 1 << 20;
  private static final int FRAME_HEAD_BYTES = 5;
  private static final int END_BYTES = 16;
  private static final int TYPE_DATA = 1;
  private static final int TYPE_END = 2;
  private static final int TYPE_ERROR = 3;

  /** What an error frame can say, by number. */
  private static final int ERROR_BUSY = 1;

  private static final int ERROR_DAMAGED = 2;
  private static final int ERROR_MISSING = 3;

  private static final long REST_NANOS_FIRST = TimeUnit.SECONDS.toNanos(1);
  private static final int REST_DOUBLINGS_MAX = 5;

  private final Path socket;
  private final long timeoutNanos;
  private final int idleMax;
  private final LongSupplier clock;

  private final Deque<Connection> idle = new ArrayDeque<>();
  private boolean closed;

  /** Whether the process rests; the other three count only then. */
  private volatile boolean resting;

  private volatile long restUntil;
  private int failures;
  private final AtomicBoolean trying = new AtomicBoolean();

  /**
   * @param socket where the process listens
   * @param timeoutNanos how long it may send nothing before it counts as dead
   * @param idleMax connections kept for the next merge
   * @param clock nanoseconds, only ever growing
   */
  MergeProcess(Path socket, long timeoutNanos, int idleMax, LongSupplier clock) {
    this.socket = socket;
    this.timeoutNanos = timeoutNanos;
    this.idleMax = idleMax;
    this.clock = clock;
  }

  /**
   * Returns a merge in the process, unless the process rests. It is asked by the first read, which
   * fails if the process can't be reached.
   *
   * @param skip bytes of the merged segment that are not wanted
   * @param memoryBytes what the process may take for it
   */
  Optional<MergedBytes> merge(OutputCatalog.Deferred output, long skip, long memoryBytes) {
    boolean trial = resting;
    if (trial && (clock.getAsLong() - restUntil < 0 || !trying.compareAndSet(false, true))) {
      return Optional.empty();
    }
    return Optional.of(new Answer(output, skip, memoryBytes, trial));
  }

  /** Closes the connections that nobody uses; those in use close with their merges. */
  @Override
  public void close() {
    synchronized (idle) {
      closed = true;
    }
    dropIdle();
  }

  /** Connections that wait for a merge. */
  int idle() {
    synchronized (idle) {
      return idle.size();
    }
  }

  private Connection pooled() {
    synchronized (idle) {
      return idle.pollFirst();
    }
  }

  private void giveBack(Connection connection) {
    synchronized (idle) {
      if (!closed && idle.size() < idleMax) {
        idle.addFirst(connection);
        return;
      }
    }
    connection.close();
  }

  private void dropIdle() {
    List<Connection> dropped;
    synchronized (idle) {
      dropped = new ArrayList<>(idle);
      idle.clear();
    }
    dropped.forEach(Connection::close);
  }

  /** Lets the process rest, since a merge of it failed. */
  synchronized void failed(IOException reason) {
    long rest = REST_NANOS_FIRST << Math.min(failures, REST_DOUBLINGS_MAX);
    failures++;
    restUntil = clock.getAsLong() + rest;
    if (!resting) {
      LOG.warn(
          "The merge process at {} failed: {}. Merges run in Java until it answers again",
          socket,
          reason.getMessage());
    }
    resting = true;
    dropIdle();
  }

  private synchronized void answered() {
    if (resting) {
      LOG.info("The merge process at {} answers again", socket);
    }
    failures = 0;
    resting = false;
  }

  private static ByteBuffer request(OutputCatalog.Deferred output, long skip, long memoryBytes)
      throws IOException {
    var bytes = new ByteArrayOutputStream();
    var body = new DataOutputStream(bytes);
    body.writeLong(skip);
    body.writeLong(memoryBytes);
    writeText(body, output.order().description());
    body.writeInt(output.segments().size());
    for (var segment : output.segments()) {
      writeText(body, segment.file().toString());
      body.writeLong(segment.offset());
      body.writeLong(segment.rawLength());
      body.writeLong(segment.partLength());
    }
    if (bytes.size() > BODY_BYTES_MAX) {
      throw new DeclinedException("takes no request of " + bytes.size() + " bytes");
    }
    ByteBuffer request = ByteBuffer.allocate(MAGIC.length + 8 + bytes.size());
    request.put(MAGIC).putShort((short) VERSION).putShort((short) KIND_MERGE);
    request.putInt(bytes.size()).put(bytes.toByteArray());
    return request.flip();
  }

  private static void writeText(DataOutputStream out, String text) throws IOException {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    if (bytes.length > TEXT_BYTES_MAX) {
      throw new DeclinedException("takes no text of " + bytes.length + " bytes");
    }
    out.writeShort(bytes.length);
    out.write(bytes);
  }

  /**
   * One connection; used by one merge at a time. The channel does not block, so that every wait has
   * an end, and can be ended.
   */
  private final class Connection {
    private final SocketChannel channel;
    private final Selector selector;
    private final ByteBuffer head = ByteBuffer.allocateDirect(FRAME_HEAD_BYTES);
    private volatile boolean aborted;

    Connection() throws IOException {
      channel = SocketChannel.open(StandardProtocolFamily.UNIX);
      Selector opened = null;
      try {
        channel.configureBlocking(false);
        opened = Selector.open();
        channel.register(opened, 0);
        if (!channel.connect(UnixDomainSocketAddress.of(socket))) {
          await(opened, SelectionKey.OP_CONNECT);
          channel.finishConnect();
        }
      } catch (IOException | RuntimeException e) {
        if (opened != null) {
          opened.close();
        }
        channel.close();
        throw e;
      }
      selector = opened;
    }

    /** Sends a request and waits for the first frame of its answer, which stays in {@code head}. */
    void ask(ByteBuffer request) throws IOException {
      while (request.hasRemaining()) {
        if (channel.write(request) == 0) {
          await(selector, SelectionKey.OP_WRITE);
        }
      }
      readHead();
    }

    void readHead() throws IOException {
      head.clear();
      readFully(head);
      head.flip();
    }

    void readFully(ByteBuffer into) throws IOException {
      while (into.hasRemaining()) {
        readSome(into);
      }
    }

    int readSome(ByteBuffer into) throws IOException {
      while (true) {
        int read = channel.read(into);
        if (read < 0) {
          throw new EOFException("it closed the connection");
        }
        if (read > 0) {
          return read;
        }
        await(selector, SelectionKey.OP_READ);
      }
    }

    private void await(Selector selector, int operation) throws IOException {
      channel.keyFor(selector).interestOps(operation);
      long end = System.nanoTime() + timeoutNanos;
      while (true) {
        long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
        if (aborted || Thread.currentThread().isInterrupted()) {
          throw new AbortedException();
        }
        if (left <= 0) {
          throw new SocketTimeoutException(
              "it was silent for " + TimeUnit.NANOSECONDS.toMillis(timeoutNanos) + " ms");
        }
        if (selector.select(left) > 0) {
          selector.selectedKeys().clear();
          return;
        }
      }
    }

    void abort() {
      aborted = true;
      selector.wakeup();
    }

    void close() {
      try (selector;
          channel) {
        LOG.trace("closing a connection to {}", socket);
      } catch (IOException e) {
        LOG.debug("closing a connection to {}", socket, e);
      }
    }
  }

  /** The wait was ended from here: says nothing about the process. */
  private static final class AbortedException extends IOException {
    private static final long serialVersionUID = 1L;

    AbortedException() {
      super("nobody reads the merge");
    }
  }

  /** One merge: its request, and the answer to it. */
  private final class Answer implements MergedBytes {
    private final OutputCatalog.Deferred output;
    private final long skip;
    private final long memoryBytes;

    /** Whether this one tries for all others if the process is back. */
    private boolean trial;

    private volatile Connection connection;
    private volatile boolean aborted;

    /** Bytes of the data frame that were not read yet. */
    private int left;

    private boolean ended;

    Answer(OutputCatalog.Deferred output, long skip, long memoryBytes, boolean trial) {
      this.output = output;
      this.skip = skip;
      this.memoryBytes = memoryBytes;
      this.trial = trial;
    }

    @Override
    public void read(ByteBuf into) throws IOException {
      try {
        if (connection == null) {
          begin();
        }
        while (left == 0 && !ended) {
          connection.readHead();
          frame();
        }
        if (ended) {
          throw new IOException("it ended the merge of " + output.name() + " before its length");
        }
        int count = Math.min(left, into.maxWritableBytes());
        into.ensureWritable(count);
        int read = connection.readSome(into.nioBuffer(into.writerIndex(), count));
        into.writerIndex(into.writerIndex() + read);
        left -= read;
      } catch (IOException e) {
        throw noted(e);
      }
    }

    @Override
    public void finish() throws IOException {
      try {
        while (left == 0 && !ended) {
          connection.readHead();
          frame();
        }
        if (left > 0) {
          throw new IOException("it sent more of " + output.name() + " than its length");
        }
      } catch (IOException e) {
        throw noted(e);
      }
    }

    @Override
    public void abort() {
      aborted = true;
      Connection waiting = connection;
      if (waiting != null) {
        waiting.abort();
      }
    }

    @Override
    public void close() {
      tried();
      if (connection == null) {
        return;
      }
      if (ended && !aborted) {
        giveBack(connection);
      } else {
        connection.close();
      }
    }

    /** Asks, and looks at the first frame. */
    private void begin() throws IOException {
      ByteBuffer request = request(output, skip, memoryBytes);
      Connection old = pooled();
      if (old == null || !ask(old, request.duplicate())) {
        // A kept connection may be one to a process that has ended since: a new one tells.
        use(new Connection());
        connection.ask(request);
      }
      frame();
      answered();
      tried();
    }

    private boolean ask(Connection old, ByteBuffer request) throws IOException {
      use(old);
      try {
        old.ask(request);
        return true;
      } catch (AbortedException | SocketTimeoutException e) {
        throw e;
      } catch (IOException e) {
        old.close();
        return false;
      }
    }

    private void use(Connection taken) throws IOException {
      connection = taken;
      if (aborted) {
        throw new AbortedException();
      }
    }

    private void tried() {
      if (trial) {
        trial = false;
        trying.set(false);
      }
    }

    /** Remembers what a failure says about the process. */
    private IOException noted(IOException e) {
      if (e instanceof SpillUnreadableException || e instanceof DeclinedException) {
        if (ended) {
          answered();
        }
      } else if (!(e instanceof AbortedException)) {
        failed(e);
      }
      tried();
      return e;
    }

    /** Looks at the head of a frame, and at the whole of all but a data frame. */
    private void frame() throws IOException {
      int type = connection.head.get();
      int length = connection.head.getInt();
      if (length < 0 || length > FRAME_BYTES_MAX) {
        throw new IOException("it sent a frame of " + Integer.toUnsignedLong(length) + " bytes");
      }
      switch (type) {
        case TYPE_DATA -> left = length;
        case TYPE_END -> {
          if (length != END_BYTES) {
            throw new IOException("it sent an end of " + length + " bytes");
          }
          connection.readFully(ByteBuffer.allocate(END_BYTES));
          ended = true;
        }
        case TYPE_ERROR -> error(length);
        default -> throw new IOException("it sent a frame of the unknown type " + type);
      }
    }

    private void error(int length) throws IOException {
      ByteBuffer body = ByteBuffer.allocate(length);
      connection.readFully(body);
      body.flip();
      ended = true;
      int kind = length < 2 ? 0 : Short.toUnsignedInt(body.getShort());
      String sentence = StandardCharsets.UTF_8.decode(body).toString();
      switch (kind) {
        case ERROR_DAMAGED -> throw new SpillUnreadableException(sentence);
        case ERROR_MISSING -> {
          for (var segment : output.segments()) {
            if (!segment.file().toFile().exists()) {
              throw new SpillUnreadableException(sentence);
            }
          }
          throw new DeclinedException("does not see what is there: " + sentence);
        }
        case ERROR_BUSY -> throw new DeclinedException("is busy: " + sentence);
        default -> throw new DeclinedException("refused: " + sentence);
      }
    }
  }

  /** The process is well, but does not do this merge. */
  static final class DeclinedException extends IOException {
    private static final long serialVersionUID = 1L;

    DeclinedException(String message) {
      super(message);
    }
  }
}
