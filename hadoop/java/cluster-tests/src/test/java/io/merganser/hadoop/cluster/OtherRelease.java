package io.merganser.hadoop.cluster;

import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntFunction;

/**
 * Stands between tasks and nodes, and decides for each map whether the task and its node are of
 * releases that don't understand each other: then the request has a version that no node knows, and
 * the node itself refuses it.
 *
 * <pre>
 *   task --- request ---> this: version 1, 2 or 99 ---> a node
 *   task <-- answer ---------- as it is --------------- the node
 * </pre>
 */
final class OtherRelease implements Closeable {
  private static final int HEAD_BYTES = 12;
  private static final int VERSION_AT = 4;
  private static final int LENGTH_AT = 8;
  private static final short UNKNOWN_VERSION = 99;

  /**
   * The node of a map, and whether they understand each other.
   *
   * @param node the socket of the node
   * @param understands whether the version stays as it is
   */
  record Meeting(Path node, boolean understands) {}

  private final Path socket;
  private final ServerSocketChannel server;
  private final IntFunction<Meeting> meetings;
  private final AtomicInteger connections = new AtomicInteger();
  private volatile Throwable failure;

  /**
   * Listens.
   *
   * @param meetings what happens to each connection, by its number from 0. A task connects once for
   *     its map
   */
  OtherRelease(IntFunction<Meeting> meetings) throws IOException {
    this.meetings = meetings;
    socket = Files.createTempDirectory("merganser").resolve("relay.sock");
    server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
    server.bind(UnixDomainSocketAddress.of(socket));
    daemon(this::accept);
  }

  Path socket() {
    return socket;
  }

  /** An exchange that may fail because one side has left. */
  private interface Work {
    void run() throws IOException;
  }

  private static void daemon(Work work) {
    Thread thread =
        new Thread(
            () -> {
              try {
                work.run();
              } catch (IOException e) {
                // Task or node has left, or the test is over; closing told the other side.
              }
            },
            "relay");
    thread.setDaemon(true);
    thread.start();
  }

  private void accept() throws IOException {
    while (true) {
      SocketChannel task = server.accept();
      try {
        Meeting meeting = meetings.apply(connections.getAndIncrement());
        daemon(() -> relay(task, meeting));
      } catch (AssertionError | RuntimeException e) {
        // close() throws it. This map and the next ones end at once instead of waiting for answers.
        failure = e;
        task.close();
        server.close();
        return;
      }
    }
  }

  private static void relay(SocketChannel task, Meeting meeting) throws IOException {
    try (task;
        SocketChannel node = SocketChannel.open(UnixDomainSocketAddress.of(meeting.node()))) {
      daemon(() -> requests(task, node, meeting.understands()));
      // A node that refuses a request closes before it has read all of it. Its answer comes first.
      answers(node, task);
    }
  }

  private static void requests(SocketChannel task, SocketChannel node, boolean understands)
      throws IOException {
    while (true) {
      ByteBuffer head = ByteBuffer.allocate(HEAD_BYTES);
      if (task.read(head) < 0) {
        node.shutdownOutput();
        return;
      }
      fill(task, head);
      int length = head.getInt(LENGTH_AT);
      if (!understands) {
        head.putShort(VERSION_AT, UNKNOWN_VERSION);
      }
      write(node, head);
      write(node, fill(task, ByteBuffer.allocate(length)));
    }
  }

  private static void answers(SocketChannel node, SocketChannel task) throws IOException {
    ByteBuffer some = ByteBuffer.allocate(1 << 16);
    while (node.read(some.clear()) >= 0) {
      write(task, some.flip());
    }
  }

  private static ByteBuffer fill(SocketChannel from, ByteBuffer all) throws IOException {
    while (all.hasRemaining()) {
      if (from.read(all) < 0) {
        throw new EOFException();
      }
    }
    return all.flip();
  }

  private static void write(SocketChannel to, ByteBuffer bytes) throws IOException {
    while (bytes.hasRemaining()) {
      to.write(bytes);
    }
  }

  @Override
  public void close() throws IOException {
    server.close();
    ClusterUnderTest.delete(socket.getParent());
    if (failure != null) {
      throw new AssertionError("a connection has no node to meet", failure);
    }
  }
}
