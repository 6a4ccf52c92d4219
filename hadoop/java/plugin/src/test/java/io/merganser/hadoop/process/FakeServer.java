package io.merganser.hadoop.process;

import java.io.BufferedOutputStream;
import java.io.Closeable;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

/** A process that listens on a Unix socket, with a thread for each connection. */
public abstract class FakeServer implements Closeable {
  /** Is counted down when the server is closed. */
  protected final CountDownLatch closed = new CountDownLatch(1);

  private final ServerSocketChannel server;
  private final Thread accepting = new Thread(this::accept, "fake server");
  private final ConcurrentHashMap<SocketChannel, Boolean> connections = new ConcurrentHashMap<>();
  private final AtomicInteger accepted = new AtomicInteger();

  /** Listens at a path. Connections are accepted from {@link #start} on. */
  protected FakeServer(Path socket) throws IOException {
    Files.deleteIfExists(socket);
    server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
    server.bind(UnixDomainSocketAddress.of(socket));
  }

  /** Accepts connections. The last call of a constructor, since answers need all its fields. */
  protected final void start() {
    accepting.setDaemon(true);
    accepting.start();
  }

  /**
   * Answers one request; what is left in {@code out} is sent afterwards.
   *
   * @return whether the connection stays open
   */
  protected abstract boolean answer(DataInputStream in, DataOutputStream out)
      throws IOException, InterruptedException;

  /** The number of connections so far. */
  public int accepted() {
    return accepted.get();
  }

  /** Closes the socket and all connections, as the end of a process does. May be called twice. */
  @Override
  public void close() throws IOException {
    closed.countDown();
    server.close();
    try {
      // Until it has ended, clients can still connect.
      accepting.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    for (SocketChannel connection : connections.keySet()) {
      connection.close();
    }
  }

  private void accept() {
    try {
      while (true) {
        SocketChannel connection = server.accept();
        accepted.incrementAndGet();
        connections.put(connection, true);
        Thread serving = new Thread(() -> serve(connection), "connection of a fake server");
        serving.setDaemon(true);
        serving.start();
      }
    } catch (IOException e) {
      // Closed.
    }
  }

  private void serve(SocketChannel connection) {
    try (connection) {
      DataInputStream in = new DataInputStream(Channels.newInputStream(connection));
      DataOutputStream out =
          new DataOutputStream(new BufferedOutputStream(Channels.newOutputStream(connection)));
      for (boolean more = true; more; ) {
        more = answer(in, out);
        out.flush();
      }
    } catch (IOException | InterruptedException e) {
      // The other side is gone, or this server was closed.
    } finally {
      connections.remove(connection);
    }
  }
}
