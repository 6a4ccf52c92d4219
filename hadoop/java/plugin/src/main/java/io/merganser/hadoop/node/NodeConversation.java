package io.merganser.hadoop.node;

import io.merganser.hadoop.process.ProcessConnection;
import io.merganser.hadoop.segment.DamagedSegmentException;
import java.io.Closeable;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.fs.FSError;
import org.apache.hadoop.mapred.NodeMapOutput;
import org.apache.hadoop.mapred.ReceivedSpills;

/**
 * A conversation with the node: requests, and the frames of their answers.
 *
 * <pre>
 *   map      accepted  (progress | data | spill)*  end       or an error at any point
 *   upload   accepted                                        or an error
 * </pre>
 */
final class NodeConversation implements Closeable {
  private static final int FRAME_BYTES_MAX = 1 << 20;
  private static final int DATA_BYTES = 128 << 10;

  private static final int TYPE_DATA = 1;
  private static final int TYPE_END = 2;
  private static final int TYPE_ERROR = 3;
  private static final int TYPE_HELLO = 4;
  private static final int TYPE_ACCEPTED = 5;
  private static final int TYPE_PROGRESS = 6;
  private static final int TYPE_SPILL = 7;
  private static final int TYPE_STATE = 8;

  private static final int ACCEPTED_BYTES = Long.BYTES;
  private static final int PROGRESS_BYTES = 2 * Long.BYTES;
  private static final int SPILL_HEAD_BYTES = 2 * Integer.BYTES + Long.BYTES;
  private static final int SPILL_PART_BYTES = 3 * Long.BYTES;

  /** Follows a map while it runs. */
  interface Watcher {
    /** Is called at least about once per second. */
    void alive();

    /** Is called when the node says how many bytes of the split it has mapped. */
    void done(long splitBytes);
  }

  private final Path socket;
  private final Watcher watcher;
  private final ProcessConnection connection;
  private final ByteBuffer data = ByteBuffer.allocate(DATA_BYTES);
  private boolean accepted;

  /**
   * Connects.
   *
   * @param timeoutMillis how long the node may send nothing
   * @throws OnHostException if nothing listens there
   */
  NodeConversation(Path socket, long timeoutMillis, Watcher watcher) throws OnHostException {
    this.socket = socket;
    this.watcher = watcher;
    try {
      connection =
          new ProcessConnection(
              socket, TimeUnit.MILLISECONDS.toNanos(timeoutMillis), watcher::alive);
    } catch (IOException e) {
      throw new OnHostException(HostReason.ABSENT, socket + ": " + e.getMessage(), e);
    }
  }

  /**
   * Sends a request for a map and receives its spills. If the node doesn't have the program that
   * the job brings, it gets it first.
   *
   * @return what the node counted
   * @throws OnHostException if the node refuses or fails; the spills are void then
   */
  NodeCounts map(NodeRequest.Map map, ReceivedSpills spills) throws OnHostException, IOException {
    ByteBuffer request = NodeRequest.map(map);
    Optional<NodeModule> module = map.program().module();
    try {
      return answer(request.duplicate(), spills);
    } catch (OnHostException e) {
      if (e.reason() != HostReason.PROGRAM_ABSENT || module.isEmpty() || accepted) {
        throw e;
      }
    }
    upload(module.get());
    return answer(request, spills);
  }

  private void upload(NodeModule module) throws OnHostException {
    try {
      connection.ask(NodeRequest.upload(module));
      Head head = head();
      if (head.type == TYPE_ERROR) {
        throw NodeErrors.of(body(head.length), socket);
      }
      if (head.type != TYPE_ACCEPTED) {
        throw protocol("a frame of type " + head.type + " instead of an answer to an upload");
      }
      body(head.type, head.length, ACCEPTED_BYTES);
    } catch (IOException e) {
      throw failed(e);
    }
  }

  private NodeCounts answer(ByteBuffer request, ReceivedSpills spills) throws OnHostException {
    try {
      connection.ask(request);
      while (true) {
        Head head = head();
        watcher.alive();
        if (head.type == TYPE_END) {
          return end(body(head.type, head.length, NodeCounts.BYTES), spills);
        }
        frame(head.type, head.length, spills);
        connection.readHead();
      }
    } catch (IOException e) {
      throw failed(e);
    }
  }

  private void frame(int type, int length, ReceivedSpills spills)
      throws IOException, OnHostException {
    switch (type) {
      case TYPE_ACCEPTED -> {
        body(type, length, ACCEPTED_BYTES);
        accepted = true;
      }
      case TYPE_PROGRESS -> watcher.done(body(type, length, PROGRESS_BYTES).getLong());
      case TYPE_DATA -> data(length, spills);
      case TYPE_SPILL -> spill(body(length), spills);
      case TYPE_ERROR -> throw NodeErrors.of(body(length), socket);
      default -> throw protocol("a frame of the unknown type " + type);
    }
  }

  private void data(int length, ReceivedSpills spills) throws IOException, OnHostException {
    if (!accepted) {
      throw protocol("data before it accepted the map");
    }
    if (!spills.incomplete() && spills.count() >= NodeMapOutput.SPILLS_MAX) {
      throw new OnHostException(
          HostReason.MANY_SPILLS, "the node makes more than " + spills.count() + " spills");
    }
    for (int left = length; left > 0; ) {
      data.clear().limit(Math.min(left, data.capacity()));
      left -= connection.readSome(data);
      try {
        spills.write(data.array(), 0, data.position());
      } catch (DamagedSegmentException e) {
        throw damaged(e);
      } catch (IOException | FSError e) {
        throw localDisk(e);
      }
      watcher.alive();
    }
  }

  private void spill(ByteBuffer body, ReceivedSpills spills) throws OnHostException {
    if (body.remaining() < SPILL_HEAD_BYTES) {
      throw protocol("a spill without its numbers");
    }
    int number = body.getInt();
    long records = body.getLong();
    int partitions = body.getInt();
    if (number != spills.count() || body.remaining() != (long) partitions * SPILL_PART_BYTES) {
      throw protocol("spill " + number + " with another number or index");
    }
    long[] parts = new long[partitions];
    for (int partition = 0; partition < partitions; partition++) {
      body.getLong();
      body.getLong();
      parts[partition] = body.getLong();
    }
    try {
      spills.endSpill(records, parts);
    } catch (DamagedSegmentException e) {
      throw damaged(e);
    } catch (IOException | FSError e) {
      throw localDisk(e);
    }
  }

  private NodeCounts end(ByteBuffer body, ReceivedSpills spills) throws OnHostException {
    NodeCounts counts = NodeCounts.read(body);
    if (spills.incomplete() || spills.count() == 0) {
      throw protocol("an end before its spills were complete");
    }
    if (counts.spills() != spills.count()
        || counts.spillBytes() != spills.bytes()
        || counts.spilledRecords() != spills.records()) {
      throw protocol("an end that counts other spills than it sent");
    }
    return counts;
  }

  /** Asks for the version and the load of the node. */
  NodeProbe.State hello() throws OnHostException {
    return state(NodeRequest.hello(), TYPE_HELLO);
  }

  /**
   * Asks for all that a node of version 3 or newer tells.
   *
   * @param folders whether it looks at its folders
   */
  NodeProbe.State state(boolean folders) throws OnHostException {
    return state(NodeRequest.state(folders), TYPE_STATE);
  }

  private NodeProbe.State state(ByteBuffer request, int expected) throws OnHostException {
    try {
      connection.ask(request);
      Head head = head();
      ByteBuffer body = body(head.length);
      if (head.type == TYPE_ERROR) {
        throw NodeErrors.of(body, socket);
      }
      if (head.type != expected) {
        throw protocol("a frame of type " + head.type + " instead of its state");
      }
      try {
        return state(body, expected == TYPE_STATE);
      } catch (BufferUnderflowException | IllegalArgumentException e) {
        throw protocol("a state that is too short");
      }
    } catch (IOException e) {
      throw failed(e);
    }
  }

  private static NodeProbe.State state(ByteBuffer body, boolean hasDetails) {
    int version = Short.toUnsignedInt(body.getShort());
    int maps = body.getInt();
    long memory = body.getLong();
    int mapsMax = body.getInt();
    // Most bytes of memory.
    body.getLong();
    List<String> programs = new ArrayList<>();
    for (int left = Short.toUnsignedInt(body.getShort()); left > 0; left--) {
      programs.add(text(body));
    }
    String product = hasDetails ? text(body) : StandardCharsets.UTF_8.decode(body).toString();
    Optional<NodeProbe.Details> details =
        hasDetails ? Optional.of(details(body)) : Optional.empty();
    return new NodeProbe.State(version, maps, mapsMax, memory, programs, product, details);
  }

  private static NodeProbe.Details details(ByteBuffer body) {
    boolean uploads = body.get() != 0;
    long seconds = body.getLong();
    long maps = body.getLong();
    long bytesRead = body.getLong();
    long bytesSent = body.getLong();
    long nanos = body.getLong();
    long left = body.getLong();
    Map<HostReason, Long> notMapped = new EnumMap<>(HostReason.class);
    for (int kinds = Short.toUnsignedInt(body.getShort()); kinds > 0; kinds--) {
      HostReason reason = NodeErrors.reason(Short.toUnsignedInt(body.getShort()));
      notMapped.merge(reason, body.getLong(), Long::sum);
    }
    List<NodeProbe.Folder> folders = new ArrayList<>();
    for (int count = Short.toUnsignedInt(body.getShort()); count > 0; count--) {
      NodeProbe.View view = NodeProbe.View.of(Byte.toUnsignedInt(body.get()));
      folders.add(new NodeProbe.Folder(view, text(body)));
    }
    var totals = new NodeProbe.Totals(seconds, maps, bytesRead, bytesSent, nanos, left, notMapped);
    return new NodeProbe.Details(uploads, totals, folders);
  }

  private static String text(ByteBuffer body) {
    byte[] bytes = new byte[Short.toUnsignedInt(body.getShort())];
    body.get(bytes);
    return new String(bytes, StandardCharsets.UTF_8);
  }

  /** What a frame begins with. */
  private record Head(int type, int length) {}

  /** Takes the head of the frame that was read last. */
  private Head head() throws OnHostException {
    int type = connection.head().get();
    int length = connection.head().getInt();
    if (length < 0 || length > FRAME_BYTES_MAX) {
      throw protocol("a frame of " + Integer.toUnsignedLong(length) + " bytes");
    }
    return new Head(type, length);
  }

  private ByteBuffer body(int type, int length, int expected) throws IOException, OnHostException {
    if (length != expected) {
      throw protocol("a frame of type " + type + " and " + length + " bytes");
    }
    return body(length);
  }

  private ByteBuffer body(int length) throws IOException {
    ByteBuffer body = ByteBuffer.allocate(length);
    connection.readFully(body);
    return body.flip();
  }

  private OnHostException protocol(String what) {
    return new OnHostException(HostReason.PROTOCOL, "the node at " + socket + " sent " + what);
  }

  private OnHostException damaged(DamagedSegmentException e) {
    return new OnHostException(
        HostReason.DAMAGED_ANSWER, "the node at " + socket + " sent " + e.getMessage(), e);
  }

  /** Hadoop's local file system turns the errors of writes, as of a full disk, into FSError. */
  private static OnHostException localDisk(Throwable e) {
    return new OnHostException(HostReason.LOCAL_DISK, "a spill of the node: " + e, e);
  }

  private OnHostException failed(IOException e) {
    HostReason reason = e instanceof SocketTimeoutException ? HostReason.SILENT : HostReason.DIED;
    return new OnHostException(reason, "the node at " + socket + ": " + e.getMessage(), e);
  }

  /** Closes the connection; the node ends a map that it still runs. */
  @Override
  public void close() {
    connection.close();
  }
}
