package io.merganser.hadoop.segment;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.DataInputBuffer;
import org.apache.hadoop.io.DataOutputBuffer;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapred.IFile;
import org.apache.hadoop.mapred.JobConf;

/** A spill whose segments are made by Hadoop's own writer. */
public final class SpillFile {
  /** A record in serialized form. */
  public record KeyValue(byte[] key, byte[] value) {
    /** The record of a key and a value. */
    public static KeyValue of(Writable key, Writable value) {
      return new KeyValue(bytes(key), bytes(value));
    }

    private static byte[] bytes(Writable writable) {
      DataOutputBuffer out = new DataOutputBuffer();
      try {
        writable.write(out);
      } catch (IOException e) {
        throw new AssertionError("writing to memory failed", e);
      }
      return java.util.Arrays.copyOf(out.getData(), out.getLength());
    }
  }

  private static final JobConf CONF = new JobConf(false);

  private SpillFile() {}

  /** Writes segments, each a list of records in order, and returns their places. */
  public static List<Segment> write(Path file, List<List<KeyValue>> segments) throws IOException {
    List<Segment> written = new ArrayList<>();
    FileSystem local = FileSystem.getLocal(CONF).getRaw();
    try (FSDataOutputStream out = local.create(new org.apache.hadoop.fs.Path(file.toUri()))) {
      for (List<KeyValue> records : segments) {
        long start = out.getPos();
        IFile.Writer<BytesWritable, BytesWritable> writer =
            new IFile.Writer<>(CONF, out, BytesWritable.class, BytesWritable.class, null, null);
        DataInputBuffer key = new DataInputBuffer();
        DataInputBuffer value = new DataInputBuffer();
        for (KeyValue record : records) {
          key.reset(record.key(), record.key().length);
          value.reset(record.value(), record.value().length);
          writer.append(key, value);
        }
        writer.close();
        written.add(new Segment(file, start, writer.getRawLength(), writer.getCompressedLength()));
      }
    }
    return written;
  }

  /** The bytes of one segment, made by Hadoop's own writer. */
  public static byte[] bytes(Path scratch, List<KeyValue> records) throws IOException {
    write(scratch, List.of(records));
    return java.nio.file.Files.readAllBytes(scratch);
  }
}
