package io.merganser.hadoop.check;

import java.io.Closeable;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/** Asks the merge process for its state: one connection, and at most a few seconds. */
final class ProcessProbe implements Closeable {
  /**
   * The state that the process reports.
   *
   * @param protocol the protocol's version
   * @param merges merges that run now
   * @param memory bytes in use now
   * @param product the program's version
   */
  record Hello(int protocol, int merges, long memory, String product) {}

  private static final byte[] MAGIC = {'M', 'G', 'S', 'H'};
  private static final int VERSION = 1;
  private static final int KIND_MERGE = 1;
  private static final int KIND_HELLO = 2;
  private static final int TYPE_ERROR = 3;
  private static final int TYPE_HELLO = 4;
  private static final int ERROR_MISSING = 3;
  private static final int FRAME_BYTES_MAX = 1 << 20;
  private static final int PROBE_MEMORY = 1 << 20;
  private static final long PATIENCE_MILLIS = 5_000;

  private final SocketChannel channel;
  private final Selector selector;

  ProcessProbe(Path socket) throws IOException {
    channel = SocketChannel.open(StandardProtocolFamily.UNIX);
    try {
      channel.connect(UnixDomainSocketAddress.of(socket));
      channel.configureBlocking(false);
      selector = Selector.open();
      channel.register(selector, SelectionKey.OP_READ);
    } catch (IOException | RuntimeException e) {
      channel.close();
      throw e;
    }
  }

  Hello hello() throws IOException {
    send(KIND_HELLO, ByteBuffer.allocate(0));
    ByteBuffer answer = frame(TYPE_HELLO);
    int protocol = answer.getShort() & 0xFFFF;
    int merges = answer.getInt();
    long memory = answer.getLong();
    return new Hello(protocol, merges, memory, StandardCharsets.UTF_8.decode(answer).toString());
  }

  /**
   * Asks for a merge of a spill in a directory that can't have one of its name.
   *
   * @return empty if the process looked there and found nothing, otherwise the reason why not
   */
  String whyNotReadable(Path directory) throws IOException {
    byte[] order = "null".getBytes(StandardCharsets.UTF_8);
    byte[] path =
        directory.resolve(".merganser-check-no-spill").toString().getBytes(StandardCharsets.UTF_8);
    ByteBuffer body = ByteBuffer.allocate(50 + order.length + path.length);
    body.putLong(0).putLong(PROBE_MEMORY).putShort((short) order.length).put(order);
    body.putInt(1).putShort((short) path.length).put(path);
    // The lengths of a segment with one record, whose key and value are empty.
    body.putLong(0).putLong(4).putLong(8);
    send(KIND_MERGE, body.flip());
    ByteBuffer answer = frame(TYPE_ERROR);
    int kind = answer.getShort() & 0xFFFF;
    return kind == ERROR_MISSING ? "" : StandardCharsets.UTF_8.decode(answer).toString();
  }

  private void send(int kind, ByteBuffer body) throws IOException {
    ByteBuffer request = ByteBuffer.allocate(12 + body.remaining());
    request.put(MAGIC).putShort((short) VERSION).putShort((short) kind);
    request.putInt(body.remaining()).put(body).flip();
    while (request.hasRemaining()) {
      channel.write(request);
    }
  }

  private ByteBuffer frame(int expected) throws IOException {
    ByteBuffer head = receive(5);
    int type = head.get();
    int length = head.getInt();
    if (type != expected || length < 2 || length > FRAME_BYTES_MAX) {
      throw new IOException("the program there doesn't speak the protocol of the merge process");
    }
    return receive(length);
  }

  private ByteBuffer receive(int bytes) throws IOException {
    ByteBuffer into = ByteBuffer.allocate(bytes);
    long deadline = System.nanoTime() + PATIENCE_MILLIS * 1_000_000;
    while (into.hasRemaining()) {
      if (channel.read(into) < 0) {
        throw new IOException("it hung up, so it may not be a merge process of this version");
      }
      long left = (deadline - System.nanoTime()) / 1_000_000;
      if (into.hasRemaining() && left <= 0) {
        throw new InterruptedIOException("no answer for " + PATIENCE_MILLIS / 1000 + " seconds");
      }
      if (into.hasRemaining()) {
        selector.select(left);
        selector.selectedKeys().clear();
      }
    }
    return into.flip();
  }

  @Override
  public void close() throws IOException {
    selector.close();
    channel.close();
  }
}
