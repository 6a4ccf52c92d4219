package io.merganser.hadoop.node;

import java.io.DataInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/** A request for a map, as the node reads it. A program of the job is called by its SHA-256. */
public record AskedMap(
    int kind,
    String program,
    String arguments,
    String pool,
    List<long[]> ranges,
    long start,
    long end,
    byte[] tail,
    boolean atEndOfFile,
    byte[] delimiter,
    int lineMax,
    int partitions,
    int keyType,
    int valueType,
    int combine,
    long memory,
    int patience) {
  /** Reads the body of a request. */
  static AskedMap read(DataInputStream in) throws IOException {
    in.readUTF();
    int kind = in.readUnsignedByte();
    String program = kind == 2 ? HexFormat.of().formatHex(in.readNBytes(32)) : in.readUTF();
    String arguments = in.readUTF();
    String pool = in.readUTF();
    List<long[]> ranges = new ArrayList<>();
    for (int left = in.readInt(); left > 0; left--) {
      ranges.add(
          new long[] {in.readLong(), in.readLong(), in.readLong(), in.readLong(), in.readLong()});
    }
    long start = in.readLong();
    long end = in.readLong();
    byte[] tail = in.readNBytes(in.readInt());
    boolean eof = in.readUnsignedByte() == 1;
    byte[] delimiter = in.readNBytes(in.readUnsignedShort());
    int lineMax = in.readInt();
    int partitions = in.readInt();
    require(in.readUnsignedByte() == 1, "partitioner");
    require(in.readUnsignedByte() == 1, "order");
    int keyType = in.readUnsignedByte();
    int valueType = in.readUnsignedByte();
    int combine = in.readUnsignedByte();
    require(in.readUnsignedByte() == 0, "codec");
    long memory = in.readLong();
    int patience = in.readInt();
    require(in.available() == 0, "the end");
    return new AskedMap(
        kind,
        program,
        arguments,
        pool,
        ranges,
        start,
        end,
        tail,
        eof,
        delimiter,
        lineMax,
        partitions,
        keyType,
        valueType,
        combine,
        memory,
        patience);
  }

  private static void require(boolean right, String what) throws IOException {
    if (!right) {
      throw new IOException("the request has another " + what);
    }
  }
}
