package io.merganser.hadoop.process;

import java.io.EOFException;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A connection to a process of this node, {@code merganser hadoop serve}, used by one request at a
 * time. The channel doesn't block, so that every wait has a time limit and can be aborted.
 */
public final class ProcessConnection {
  private static final Logger LOG = LoggerFactory.getLogger(ProcessConnection.class);

  /** Bytes of a frame's head: its type and length. */
  private static final int FRAME_HEAD_BYTES = 5;

  private static final long CALL_MILLIS = 1000;

  private final Path socket;
  private final long timeoutNanos;
  private final Runnable whileWaiting;
  private final SocketChannel channel;
  private final Selector selector;
  private final ByteBuffer head = ByteBuffer.allocateDirect(FRAME_HEAD_BYTES);
  private volatile boolean aborted;

  /**
   * Connects.
   *
   * @param timeoutNanos how long one wait may last
   */
  public ProcessConnection(Path socket, long timeoutNanos) throws IOException {
    this(socket, timeoutNanos, () -> {});
  }

  /**
   * Connects.
   *
   * @param timeoutNanos how long one wait may last
   * @param whileWaiting is called about once per second of a wait, and at its end
   */
  public ProcessConnection(Path socket, long timeoutNanos, Runnable whileWaiting)
      throws IOException {
    this.socket = socket;
    this.timeoutNanos = timeoutNanos;
    this.whileWaiting = whileWaiting;
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

  /** Sends a request and reads the first {@link #head} of its answer. */
  public void ask(ByteBuffer request) throws IOException {
    while (request.hasRemaining()) {
      if (channel.write(request) == 0) {
        await(selector, SelectionKey.OP_WRITE);
      }
    }
    readHead();
  }

  /** The head of the frame that was read last. */
  public ByteBuffer head() {
    return head;
  }

  /** Reads the {@link #head} of the next frame. */
  public void readHead() throws IOException {
    head.clear();
    readFully(head);
    head.flip();
  }

  /** Fills a buffer. */
  public void readFully(ByteBuffer into) throws IOException {
    while (into.hasRemaining()) {
      readSome(into);
    }
  }

  /** Reads at least one byte. */
  public int readSome(ByteBuffer into) throws IOException {
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
      int ready = selector.select(Math.min(left, CALL_MILLIS));
      whileWaiting.run();
      if (ready > 0) {
        selector.selectedKeys().clear();
        return;
      }
    }
  }

  /** Makes a wait end soon with an {@link AbortedException}. Called by any thread. */
  public void abort() {
    aborted = true;
    selector.wakeup();
  }

  /** Closes the connection, which the process notices. */
  public void close() {
    try (selector;
        channel) {
      LOG.trace("closing a connection to {}", socket);
    } catch (IOException e) {
      LOG.debug("closing a connection to {}", socket, e);
    }
  }
}
