package io.merganser.hadoop.cluster;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.crypto.SecretKey;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.WritableUtils;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.security.SecureShuffleUtils;
import org.apache.hadoop.mapreduce.security.TokenCache;
import org.apache.hadoop.mapreduce.security.token.JobTokenSecretManager;
import org.apache.hadoop.mapreduce.task.reduce.ShuffleHeader;

/**
 * Fetches the output of one map for one reducer, as slowly as the test likes. Its buffers are
 * small, so that the node can't be far ahead.
 */
final class Fetch implements AutoCloseable {
  private final Socket socket;
  private final DataInputStream in;
  private final int status;
  private final Map<String, String> headers = new HashMap<>();
  private long partLength = -1;

  /** Asks {@code node} for the output of {@code map} for reducer {@code reduce}. */
  Fetch(Node node, Job job, TaskAttemptID map, int reduce) throws IOException {
    SecretKey key =
        JobTokenSecretManager.createSecretKey(
            TokenCache.getShuffleSecretKey(((JobConf) job.getConfiguration()).getCredentials()));
    String query = "/mapOutput?job=" + job.getJobID() + "&reduce=" + reduce + "&map=" + map;
    String host = "localhost:" + node.shufflePort();
    String message = node.shufflePort() + query;
    socket = new Socket();
    socket.setReceiveBufferSize(16 << 10);
    socket.setSoTimeout(60_000);
    socket.connect(new InetSocketAddress("localhost", node.shufflePort()));
    List<String> request = new ArrayList<>();
    request.add("GET " + query + " HTTP/1.1");
    request.add("Host: " + host);
    request.add(
        SecureShuffleUtils.HTTP_HEADER_URL_HASH
            + ": "
            + SecureShuffleUtils.hashFromString(message, key));
    request.add(ShuffleHeader.HTTP_HEADER_NAME + ": " + ShuffleHeader.DEFAULT_HTTP_HEADER_NAME);
    request.add(
        ShuffleHeader.HTTP_HEADER_VERSION + ": " + ShuffleHeader.DEFAULT_HTTP_HEADER_VERSION);
    request.add("\r\n");
    socket
        .getOutputStream()
        .write(String.join("\r\n", request).getBytes(StandardCharsets.US_ASCII));
    in = new DataInputStream(new BufferedInputStream(socket.getInputStream(), 4096));
    String first = line(in);
    status = Integer.parseInt(first.split(" ")[1]);
    for (String line = line(in); !line.isEmpty(); line = line(in)) {
      int colon = line.indexOf(':');
      headers.put(line.substring(0, colon).toLowerCase(), line.substring(colon + 1).trim());
    }
  }

  private static String line(InputStream in) throws IOException {
    ByteArrayOutputStream line = new ByteArrayOutputStream();
    for (int b = in.read(); b != '\n'; b = in.read()) {
      if (b < 0) {
        throw new IOException("the connection was closed in the head of the answer");
      }
      if (b != '\r') {
        line.write(b);
      }
    }
    return line.toString(StandardCharsets.US_ASCII);
  }

  /** The answer's status, 200 for a segment that follows. */
  int status() {
    return status;
  }

  /** A header of the answer, or null. */
  String header(String name) {
    return headers.get(name.toLowerCase());
  }

  /** Bytes of the segment, trailer included. */
  long length() throws IOException {
    if (partLength < 0) {
      // A ShuffleHeader, whose fields only Hadoop's own reducers can read.
      Text.readString(in);
      partLength = WritableUtils.readVLong(in);
      WritableUtils.readVLong(in);
      WritableUtils.readVInt(in);
    }
    return partLength;
  }

  /** Reads {@code length} bytes of the segment. */
  byte[] read(int length) throws IOException {
    length();
    return in.readNBytes(length);
  }

  @Override
  public void close() throws IOException {
    socket.close();
  }
}
