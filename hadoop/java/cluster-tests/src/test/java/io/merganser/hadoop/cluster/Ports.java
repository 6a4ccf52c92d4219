package io.merganser.hadoop.cluster;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;

/**
 * Ports for daemons that must know them before they listen, or listen on the same ones again.
 *
 * <p>A port that the kernel gave and that was closed again is no such port: until the daemon
 * listens, any connection may get it. So these are below the range that the kernel gives ports
 * from. Each JVM takes a block of its own, whose first port it holds until it ends, so tests in
 * another JVM get none of them.
 */
final class Ports {
  private static final int FIRST = 20_000;
  private static final int BEYOND = 32_000;
  private static final int BLOCK = 250;

  private static ServerSocket held;
  private static int next;

  private Ports() {}

  /** A port of this JVM on the loopback address, on which nothing listens. */
  static synchronized int free() throws IOException {
    while (held != null && next < held.getLocalPort() + BLOCK) {
      int port = next++;
      ServerSocket socket = listen(port);
      if (socket != null) {
        socket.close();
        return port;
      }
    }
    // The ports of a block that is used up stay with it: daemons may still listen there.
    for (int first = held == null ? FIRST : held.getLocalPort() + BLOCK;
        first < BEYOND;
        first += BLOCK) {
      ServerSocket socket = listen(first);
      if (socket != null) {
        held = socket;
        next = first + 1;
        return free();
      }
    }
    throw new IOException("all ports from " + FIRST + " to " + BEYOND + " are in use");
  }

  private static ServerSocket listen(int port) throws IOException {
    ServerSocket socket = new ServerSocket();
    try {
      socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 1);
      return socket;
    } catch (java.net.BindException taken) {
      socket.close();
      return null;
    }
  }
}
