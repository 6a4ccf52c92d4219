package io.merganser.hadoop.cluster;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.List;

/**
 * Ports for daemons that must know them before they listen, or listen on the same ones again.
 *
 * <p>A port that the kernel gave and that was closed again is no such port: until the daemon
 * listens, any connection may get it. So these are below the range that the kernel gives ports
 * from. Each JVM takes blocks of its own, whose first ports it holds until it ends, so tests in
 * another JVM get none of them.
 */
final class Ports {
  private static final int FIRST = 20_000;
  private static final int BEYOND = 32_000;
  private static final int BLOCK = 250;

  /** The first ports of this JVM's blocks. Daemons may still listen in one that is used up. */
  private static final List<ServerSocket> HELD = new ArrayList<>();

  private static int next = FIRST;
  private static int end = FIRST;

  private Ports() {}

  /** A port of this JVM on the loopback address, on which nothing listens. */
  static synchronized int free() throws IOException {
    while (true) {
      while (next < end) {
        int port = next++;
        ServerSocket socket = listen(port);
        if (socket != null) {
          socket.close();
          return port;
        }
      }
      takeBlock();
    }
  }

  private static void takeBlock() throws IOException {
    for (int first = end; first < BEYOND; first += BLOCK) {
      ServerSocket socket = listen(first);
      if (socket != null) {
        HELD.add(socket);
        next = first + 1;
        end = first + BLOCK;
        return;
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
