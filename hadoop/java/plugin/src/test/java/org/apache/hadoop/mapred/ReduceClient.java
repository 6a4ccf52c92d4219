package org.apache.hadoop.mapred;

import java.io.BufferedInputStream;
import java.io.Closeable;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import javax.crypto.SecretKey;
import org.apache.hadoop.io.WritableUtils;
import org.apache.hadoop.mapreduce.security.SecureShuffleUtils;

/** The reducer's side of one connection, with the same bytes as Hadoop's Fetcher. */
final class ReduceClient implements Closeable {
  private final Socket socket;
  private final int port;
  private final SecretKey key;
  private final DataInputStream in;

  ReduceClient(int port, SecretKey key) throws IOException {
    this(connect(port), port, key);
  }

  ReduceClient(Socket socket, int port, SecretKey key) throws IOException {
    this.socket = socket;
    this.port = port;
    this.key = key;
    socket.setSoTimeout(60_000);
    in = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
  }

  static Socket connect(int port) throws IOException {
    Socket socket = new Socket();
    socket.setReceiveBufferSize(64 << 10);
    socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
    return socket;
  }

  /** Sends a request and reads the head of the answer. */
  Reply fetch(int reduce, boolean keepAlive, String... maps) throws IOException {
    String hash = send(reduce, keepAlive, maps);
    int status = Integer.parseInt(line().split(" ")[1]);
    Map<String, String> headers = new HashMap<>();
    for (String line = line(); !line.isEmpty(); line = line()) {
      int colon = line.indexOf(':');
      headers.put(
          line.substring(0, colon).toLowerCase(Locale.ROOT), line.substring(colon + 1).trim());
    }
    if (status == 200) {
      SecureShuffleUtils.verifyReply(
          headers.get(SecureShuffleUtils.HTTP_HEADER_REPLY_URL_HASH.toLowerCase(Locale.ROOT)),
          hash,
          key);
    }
    long length = Long.parseLong(headers.get("content-length"));
    return new Reply(reduce, status, headers, length, new DataInputStream(new Body(in, length)));
  }

  /** Sends a request and returns its hash. */
  String send(int reduce, boolean keepAlive, String... maps) throws IOException {
    String uri =
        "/mapOutput?job="
            + ShuffleNode.JOB
            + "&reduce="
            + reduce
            + "&map="
            + String.join(",", maps)
            + (keepAlive ? "&keepAlive=true" : "");
    String hash = SecureShuffleUtils.hashFromString(port + uri, key);
    socket
        .getOutputStream()
        .write(
            ("GET "
                    + uri
                    + " HTTP/1.1\r\nHost: node\r\nname: mapreduce\r\nversion: 1.0.0\r\nUrlHash: "
                    + hash
                    + "\r\n\r\n")
                .getBytes(StandardCharsets.ISO_8859_1));
    return hash;
  }

  private String line() throws IOException {
    StringBuilder line = new StringBuilder();
    for (int c = in.read(); c != '\n'; c = in.read()) {
      if (c < 0) {
        throw new EOFException("the connection was closed before an answer");
      }
      if (c != '\r') {
        line.append((char) c);
      }
    }
    return line.toString();
  }

  /** Waits for a byte or the end; true if the other side has closed the connection. */
  boolean closedByNode() throws IOException {
    try {
      return in.read() < 0;
    } catch (java.net.SocketException e) {
      return true;
    }
  }

  @Override
  public void close() throws IOException {
    socket.close();
  }

  /** The header of a map output. */
  record Header(String map, long length) {}

  /** One map output as it was received. */
  record Output(String map, byte[] bytes) {}

  /** An answer whose body has not been read yet. */
  record Reply(
      int reduce, int status, Map<String, String> headers, long length, DataInputStream body) {
    /** The next map output's header. */
    Header header() throws IOException {
      String map = WritableUtils.readStringSafely(body, 1000);
      long partLength = WritableUtils.readVLong(body);
      long rawLength = WritableUtils.readVLong(body);
      if (WritableUtils.readVInt(body) != reduce || partLength != rawLength + 4) {
        throw new IOException("a header of another partition, or wrong lengths");
      }
      return new Header(map, partLength);
    }

    /** The next map output, whole. */
    Output output() throws IOException {
      Header header = header();
      byte[] bytes = new byte[(int) header.length];
      body.readFully(bytes);
      return new Output(header.map, bytes);
    }

    /** All map outputs, to the very last byte of the answer. */
    List<Output> outputs(int count) throws IOException {
      List<Output> outputs = new java.util.ArrayList<>();
      for (int i = 0; i < count; i++) {
        outputs.add(output());
      }
      if (body.read() >= 0) {
        throw new IOException("the answer is longer than its map outputs");
      }
      return outputs;
    }
  }

  /** The bytes of one answer. */
  private static final class Body extends FilterInputStream {
    private long left;

    Body(InputStream in, long length) {
      super(in);
      left = length;
    }

    @Override
    public int read() throws IOException {
      if (left == 0) {
        return -1;
      }
      int read = super.read();
      left -= read < 0 ? 0 : 1;
      return read;
    }

    @Override
    public int read(byte[] into, int offset, int length) throws IOException {
      if (left == 0) {
        return -1;
      }
      int read = super.read(into, offset, (int) Math.min(length, left));
      left -= Math.max(0, read);
      return read;
    }
  }
}
