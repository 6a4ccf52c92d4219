package io.merganser.hadoop.node;

import io.merganser.hadoop.process.FakeServer;
import io.merganser.hadoop.segment.Segment;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;

/**
 * A node that counts words with Hadoop's own reader, whatever the program, and whose misbehaviour a
 * test chooses. It knows a program of a job once it got it. It has one file, which all blocks
 * belong to.
 */
public final class FakeNode extends FakeServer {
  /** The behaviour in a map. */
  public enum Conduct {
    WELL,
    /** Answers with the error of the kind {@code at}. */
    ERROR,
    /** Is a node of protocol version 1. */
    OLD,
    /** Answers an upload with the error of the kind {@code at}. */
    REFUSES_UPLOADS,
    /** Answers an upload with a hello. */
    GARBAGE_FOR_UPLOADS,
    /** Forgets every program at once. */
    FORGETS,
    /** Sends some data, then the error of the kind {@code at}. */
    ERROR_AFTER_DATA,
    /** Closes the connection after {@code at} bytes of data. */
    DIES,
    /** Closes the connection after all data, before the last frame. */
    DIES_BEFORE_END,
    /** Sends nothing more after {@code at} bytes of data. */
    STALLS,
    /** Sends nothing but progress for a while, then behaves. */
    SLOW,
    /** Sends a frame of an unknown type after {@code at} bytes of data. */
    GARBAGE,
    /** Sends a frame longer than allowed after {@code at} bytes of data. */
    HUGE_FRAME,
    /** Changes the byte at {@code at}. */
    WRONG_BYTE,
    /** Leaves the last {@code at} bytes of a spill out. */
    SHORT_SPILL,
    /** Adds a byte to a spill. */
    LONG_SPILL,
    /** Says that the first segment has another length. */
    WRONG_LENGTHS,
    /** Says that a spill has one record more. */
    WRONG_RECORDS,
    /** Counts one spill more in the last frame. */
    WRONG_COUNTS,
    /** Counts -1 bytes in the last frame. */
    NEGATIVE_COUNTS,
    /** Sends data before it accepts the map. */
    NOT_ACCEPTED,
    /** Ends without any spill. */
    NO_SPILL,
    /** Sends the frame of a spill whose index is cut off. */
    CUT_INDEX,
    /** Sends {@code at} empty spills. */
    MANY_SPILLS,
    /** Is of version 1, and sends only the first {@code at} bytes of a hello. */
    CUT_HELLO,
    /** Sends only the first {@code at} bytes of its state. */
    CUT_STATE
  }

  private static final int FRAME_BYTES = 5_000;

  private final Path file;
  private final List<AskedMap> asked = new ArrayList<>();
  private final List<byte[]> uploads = new ArrayList<>();
  private volatile Conduct conduct = Conduct.WELL;
  private volatile long at;
  private volatile int spills = 1;
  private volatile List<NodeProbe.Folder> folders = List.of();

  /** Listens at a path where no file is yet. */
  public FakeNode(Path socket, Path file) throws IOException {
    super(socket);
    this.file = file;
    start();
  }

  /** Sets the behaviour from the next request on. */
  public void behave(Conduct next, long value) {
    at = value;
    conduct = next;
  }

  /** Sets the number of spills from the next map on. */
  public void spill(int count) {
    spills = count;
  }

  /** Sets the folders that it tells. */
  public void show(NodeProbe.Folder... shown) {
    folders = List.of(shown);
  }

  /** The requests for maps so far. */
  public synchronized List<AskedMap> asked() {
    return List.copyOf(asked);
  }

  /** The programs of jobs that were sent so far. */
  public synchronized List<byte[]> uploads() {
    return List.copyOf(uploads);
  }

  @Override
  protected boolean answer(DataInputStream in, DataOutputStream out)
      throws IOException, InterruptedException {
    byte[] magic = in.readNBytes(4);
    if (!"MGHN".equals(new String(magic, StandardCharsets.US_ASCII))) {
      return false;
    }
    int version = in.readUnsignedShort();
    int kind = in.readUnsignedShort();
    byte[] body = in.readNBytes(in.readInt());
    if (version > (conduct == Conduct.OLD || conduct == Conduct.CUT_HELLO ? 1 : 3)) {
      error(out, 2);
      return false;
    }
    if (kind == 2) {
      return hello(out);
    }
    if (kind == 3) {
      return version == 2 && upload(body, out);
    }
    if (kind == 4) {
      return version == 3 && state(body[0] == 1, out);
    }
    AskedMap map = AskedMap.read(new DataInputStream(new java.io.ByteArrayInputStream(body)));
    if (map.kind() != version) {
      return false;
    }
    synchronized (this) {
      asked.add(map);
    }
    return map.kind() == 2 && !knows(map.program()) ? error(out, 12) : map(map, out);
  }

  private boolean upload(byte[] module, DataOutputStream out) throws IOException {
    switch (conduct) {
      case REFUSES_UPLOADS -> {
        return error(out, (int) at);
      }
      case GARBAGE_FOR_UPLOADS -> {
        return hello(out);
      }
      default -> {
        synchronized (this) {
          uploads.add(module);
        }
        frame(out, 5, longs(1 << 20));
        return true;
      }
    }
  }

  private synchronized boolean knows(String sha256) throws IOException {
    if (conduct == Conduct.FORGETS) {
      return false;
    }
    for (byte[] module : uploads) {
      if (HexFormat.of().formatHex(sha256(module)).equals(sha256)) {
        return true;
      }
    }
    return false;
  }

  private static byte[] sha256(byte[] bytes) throws IOException {
    try {
      return MessageDigest.getInstance("SHA-256").digest(bytes);
    } catch (NoSuchAlgorithmException e) {
      throw new IOException(e);
    }
  }

  private boolean hello(DataOutputStream out) throws IOException {
    var bytes = new ByteArrayOutputStream();
    load(conduct == Conduct.OLD || conduct == Conduct.CUT_HELLO ? 1 : 3, bytes);
    new DataOutputStream(bytes).writeBytes("9.8.7");
    byte[] all = bytes.toByteArray();
    frame(out, 4, conduct == Conduct.CUT_HELLO ? java.util.Arrays.copyOf(all, (int) at) : all);
    return true;
  }

  /** What a hello and a state begin with. */
  private static void load(int version, ByteArrayOutputStream bytes) throws IOException {
    var body = new DataOutputStream(bytes);
    body.writeShort(version);
    body.writeInt(2);
    body.writeLong(4096);
    body.writeInt(8);
    body.writeLong(1 << 20);
    body.writeShort(2);
    body.writeUTF("wordcount");
    body.writeUTF("grep");
  }

  private boolean state(boolean withFolders, DataOutputStream out) throws IOException {
    var bytes = new ByteArrayOutputStream();
    load(3, bytes);
    var body = new DataOutputStream(bytes);
    body.writeUTF("9.8.7");
    body.writeByte(1);
    // Seconds, maps, bytes read and sent, nanoseconds, maps that were left.
    body.write(longs(7300, 11, 12, 13, 14_000_000, 15));
    // Busy twice, a damaged block, and two kinds whose reason is PROTOCOL.
    body.writeShort(4);
    for (int[] kind : new int[][] {{1, 2}, {2, 3}, {101, 1}, {999, 4}}) {
      body.writeShort(kind[0]);
      body.writeLong(kind[1]);
    }
    List<NodeProbe.Folder> told = withFolders ? folders : List.of();
    body.writeShort(told.size());
    for (NodeProbe.Folder folder : told) {
      body.writeByte(folder.view().ordinal());
      body.writeUTF(folder.path());
    }
    byte[] all = bytes.toByteArray();
    frame(out, 8, conduct == Conduct.CUT_STATE ? java.util.Arrays.copyOf(all, (int) at) : all);
    return true;
  }

  private boolean map(AskedMap map, DataOutputStream out) throws IOException, InterruptedException {
    if (conduct == Conduct.ERROR) {
      return error(out, (int) at);
    }
    CountedWords counted = CountedWords.of(file, map, spills);
    if (conduct != Conduct.NOT_ACCEPTED) {
      frame(out, 5, longs(map.memory()));
    }
    if (conduct == Conduct.SLOW) {
      for (int i = 0; i < at; i++) {
        frame(out, 6, longs(i, i));
        out.flush();
        Thread.sleep(100);
      }
    }
    if (conduct == Conduct.MANY_SPILLS) {
      counted.spills().clear();
      counted.spills().addAll(Collections.nCopies((int) at, CountedWords.empty(map.partitions())));
    }
    if (conduct == Conduct.NO_SPILL) {
      counted.spills().clear();
    }
    long records = 0;
    long bytes = 0;
    for (int number = 0; number < counted.spills().size(); number++) {
      CountedWords.Spill spill = counted.spills().get(number);
      records += spill.records();
      bytes += spill.bytes().length;
      if (!send(out, number, spill)) {
        return conduct == Conduct.ERROR_AFTER_DATA;
      }
    }
    if (conduct == Conduct.DIES_BEFORE_END) {
      return false;
    }
    long count = counted.spills().size() + (conduct == Conduct.WRONG_COUNTS ? 1 : 0);
    long read = conduct == Conduct.NEGATIVE_COUNTS ? -1 : map.end() - map.start();
    frame(
        out,
        2,
        longs(
            counted.lines(),
            0,
            counted.words(),
            counted.outputBytes(),
            records,
            map.combine() == 0 ? 0 : counted.words(),
            map.combine() == 0 ? 0 : records,
            count,
            bytes,
            read,
            map.end() - map.start(),
            7_000_000));
    return true;
  }

  /** Sends a spill; false if nothing may follow. */
  private boolean send(DataOutputStream out, int number, CountedWords.Spill spill)
      throws IOException, InterruptedException {
    byte[] bytes = spill.bytes();
    int end = bytes.length;
    switch (conduct) {
      case WRONG_BYTE -> bytes[(int) at] ^= 1;
      case SHORT_SPILL -> end -= (int) at;
      case DIES, STALLS, GARBAGE, HUGE_FRAME, ERROR_AFTER_DATA -> end = (int) Math.min(at, end);
      default -> {
        // All bytes, as they are.
      }
    }
    for (int from = 0; from < end; ) {
      int some = Math.min(end - from, FRAME_BYTES);
      frame(out, 1, java.util.Arrays.copyOfRange(bytes, from, from + some));
      frame(out, 6, longs(from, 0));
      from += some;
    }
    switch (conduct) {
      case DIES -> {
        return false;
      }
      case STALLS -> {
        out.flush();
        closed.await();
        return false;
      }
      case GARBAGE -> {
        frame(out, 77, new byte[4]);
        return false;
      }
      case HUGE_FRAME -> {
        out.writeByte(1);
        out.writeInt(Integer.MAX_VALUE);
        return false;
      }
      case ERROR_AFTER_DATA -> {
        error(out, 101);
        return false;
      }
      case LONG_SPILL -> frame(out, 1, new byte[1]);
      default -> {
        // The spill is complete.
      }
    }
    var bodyBytes = new ByteArrayOutputStream();
    var body = new DataOutputStream(bodyBytes);
    body.writeInt(number);
    body.writeLong(spill.records() + (conduct == Conduct.WRONG_RECORDS ? 1 : 0));
    body.writeInt(spill.segments().size());
    for (Segment segment : spill.segments()) {
      boolean wrong = conduct == Conduct.WRONG_LENGTHS && segment.offset() == 0;
      body.writeLong(segment.offset());
      body.writeLong(segment.rawLength());
      body.writeLong(segment.partLength() + (wrong ? 1 : 0));
    }
    byte[] index = bodyBytes.toByteArray();
    frame(
        out,
        7,
        conduct == Conduct.CUT_INDEX ? java.util.Arrays.copyOf(index, index.length - 1) : index);
    return true;
  }

  private static byte[] longs(long... numbers) {
    java.nio.ByteBuffer bytes = java.nio.ByteBuffer.allocate(numbers.length * Long.BYTES);
    for (long number : numbers) {
      bytes.putLong(number);
    }
    return bytes.array();
  }

  private static void frame(DataOutputStream out, int type, byte[] body) throws IOException {
    out.writeByte(type);
    out.writeInt(body.length);
    out.write(body);
  }

  private static boolean error(DataOutputStream out, int kind) throws IOException {
    var bytes = new ByteArrayOutputStream();
    var body = new DataOutputStream(bytes);
    body.writeShort(kind);
    body.writeBytes("for a test");
    frame(out, 3, bytes.toByteArray());
    return true;
  }
}
