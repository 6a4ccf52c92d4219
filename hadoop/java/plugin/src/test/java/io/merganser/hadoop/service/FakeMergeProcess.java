package io.merganser.hadoop.service;

import io.merganser.hadoop.order.KeyOrder;
import io.merganser.hadoop.process.FakeServer;
import io.merganser.hadoop.segment.Segment;
import io.merganser.hadoop.segment.SegmentMerge;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** A merge process of protocol version 1 whose misbehaviour a test chooses. */
public final class FakeMergeProcess extends FakeServer {
  /** The behaviour in a merge. */
  public enum Conduct {
    WELL,
    BUSY,
    DAMAGED,
    MISSING,
    ORDER_UNKNOWN,
    /** Closes the connection after {@code at} bytes. */
    DIES,
    /** Closes the connection after all data, before the end frame. */
    DIES_BEFORE_END,
    /** Sends nothing more after {@code at} bytes. */
    STALLS,
    /** Sends a frame of an unknown type after {@code at} bytes. */
    GARBAGE,
    /** Sends a frame longer than allowed after {@code at} bytes. */
    HUGE_FRAME,
    /** Changes the byte at {@code at}. */
    WRONG_BYTE,
    /** Ends the merge after {@code at} bytes as if it were done. */
    ENDS_EARLY,
    /** Sends more bytes than there are. */
    TOO_LONG
  }

  private final AtomicInteger requests = new AtomicInteger();
  private volatile Conduct conduct = Conduct.WELL;
  private volatile long at;

  /** Listens at a path where no file is yet. */
  public FakeMergeProcess(Path socket) throws IOException {
    super(socket);
    start();
  }

  /** Sets the behaviour from the next merge on. */
  public void behave(Conduct next, long atByte) {
    at = atByte;
    conduct = next;
  }

  /** The number of merges so far. */
  public int requests() {
    return requests.get();
  }

  /** Ends as a killed process does. May be called twice. */
  public void die() throws IOException {
    close();
  }

  @Override
  protected boolean answer(DataInputStream in, DataOutputStream out)
      throws IOException, InterruptedException {
    byte[] magic = in.readNBytes(4);
    if (!"MGSH".equals(new String(magic, StandardCharsets.US_ASCII))
        || in.readUnsignedShort() != 1
        || in.readUnsignedShort() != 1) {
      return false;
    }
    in.readInt();
    requests.incrementAndGet();
    long skip = in.readLong();
    in.readLong();
    KeyOrder order = KeyOrder.parse(in.readUTF());
    List<Segment> segments = new ArrayList<>();
    int count = in.readInt();
    for (int i = 0; i < count; i++) {
      segments.add(new Segment(Path.of(in.readUTF()), in.readLong(), in.readLong(), in.readLong()));
    }
    return switch (conduct) {
      case BUSY -> error(out, 1, "all merges are taken");
      case DAMAGED -> error(out, 2, segments.get(0).file() + ": wrong checksum");
      case MISSING -> error(out, 3, segments.get(0).file() + ": no such file");
      case ORDER_UNKNOWN -> error(out, 4, "not an order of this version");
      default -> merge(out, order, segments, skip);
    };
  }

  private boolean merge(DataOutputStream out, KeyOrder order, List<Segment> segments, long skip)
      throws IOException, InterruptedException {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    try (SegmentMerge merge = new SegmentMerge(order, segments, 1 << 20)) {
      byte[] some = new byte[8 << 10];
      for (int n = merge.read(some, 0, some.length); n >= 0; ) {
        all.write(some, 0, n);
        n = merge.read(some, 0, some.length);
      }
    }
    byte[] bytes = all.toByteArray();
    if (conduct == Conduct.WRONG_BYTE) {
      bytes[(int) at] ^= 1;
    }
    boolean stops =
        switch (conduct) {
          case DIES, STALLS, GARBAGE, HUGE_FRAME, ENDS_EARLY -> true;
          default -> false;
        };
    int end = stops ? (int) Math.min(at, bytes.length) : bytes.length;
    for (int from = (int) skip; from < end; ) {
      int frame = Math.min(end - from, 50_000);
      out.writeByte(1);
      out.writeInt(frame);
      out.write(bytes, from, frame);
      from += frame;
    }
    switch (conduct) {
      case DIES, DIES_BEFORE_END -> {
        return false;
      }
      case STALLS -> {
        out.flush();
        closed.await();
      }
      case GARBAGE -> {
        out.writeByte(77);
        out.writeInt(4);
        out.writeInt(0);
        return true;
      }
      case HUGE_FRAME -> {
        out.writeByte(1);
        out.writeInt(Integer.MAX_VALUE);
        return true;
      }
      case TOO_LONG -> {
        out.writeByte(1);
        out.writeInt(1);
        out.writeByte(0);
      }
      default -> {
        // Ends as it should.
      }
    }
    out.writeByte(2);
    out.writeInt(16);
    out.writeLong(0);
    out.writeLong(0);
    return true;
  }

  private static boolean error(DataOutputStream out, int kind, String sentence) throws IOException {
    byte[] text = sentence.getBytes(StandardCharsets.UTF_8);
    out.writeByte(3);
    out.writeInt(2 + text.length);
    out.writeShort(kind);
    out.write(text);
    return true;
  }
}
