package io.merganser.workloads;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32C;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.DataOutputBuffer;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.WritableComparable;
import org.apache.hadoop.io.WritableComparator;
import org.apache.hadoop.util.Tool;

/**
 * Prints for each file of a job's output: the number of its records, their bytes, a checksum that
 * does not depend on their order, one that does, and whether its keys are in order.
 *
 * <p>Two sequence files of the same records differ in their random sync marks, so the files
 * themselves can't be compared.
 */
public final class Checksum extends Configured implements Tool {
  @Override
  public int run(String[] args) throws Exception {
    if (args.length != 2) {
      System.err.println("checksum records|lines|fixed FOLDER");
      return 2;
    }
    Path folder = new Path(args[1]);
    FileSystem files = folder.getFileSystem(getConf());
    List<String> rows = new ArrayList<>();
    for (FileStatus status : files.globStatus(new Path(folder, "part-*"))) {
      rows.add(of(args[0], status.getPath(), getConf()).json(status.getPath().getName()));
    }
    System.out.println("[" + String.join(", ", rows) + "]");
    return 0;
  }

  private static Content of(String kind, Path path, Configuration conf) throws IOException {
    Content content = new Content();
    if (kind.equals("records")) {
      try (SequenceFile.Reader in = new SequenceFile.Reader(conf, SequenceFile.Reader.file(path))) {
        content.addAll(in);
      }
      return content;
    }
    try (InputStream in = new BufferedInputStream(path.getFileSystem(conf).open(path), 1 << 20)) {
      switch (kind) {
        case "lines" -> content.addLines(in);
        case "fixed" -> content.addFixed(in, conf.getInt(Generate.RECORD_BYTES, 4096));
        default ->
            throw new IllegalArgumentException(kind + " is not one of records, lines, fixed");
      }
    }
    return content;
  }

  /** The content of a file. */
  static final class Content {
    private long records;
    private long bytes;

    /** The sum of the CRC-32C of each record. */
    private long sum;

    private final CRC32C inOrder = new CRC32C();
    private boolean sorted = true;

    private byte[] lastKey;

    private void add(byte[] record, int length) {
      CRC32C one = new CRC32C();
      one.update(record, 0, length);
      sum += one.getValue();
      inOrder.update(record, 0, length);
      records++;
      bytes += length;
    }

    void addAll(SequenceFile.Reader in) throws IOException {
      Class<? extends WritableComparable<?>> keyClass = keyClass(in);
      WritableComparator order = WritableComparator.get(keyClass);
      SequenceFile.ValueBytes value = in.createValueBytes();
      DataOutputBuffer record = new DataOutputBuffer();
      DataOutputBuffer last = new DataOutputBuffer();
      while (in.nextRawKey(record) >= 0) {
        int keyBytes = record.getLength();
        sorted &=
            records == 0
                || order.compare(last.getData(), 0, last.getLength(), record.getData(), 0, keyBytes)
                    <= 0;
        last.reset();
        last.write(record.getData(), 0, keyBytes);
        in.nextRawValue(value);
        value.writeUncompressedBytes(record);
        add(record.getData(), record.getLength());
        record.reset();
      }
    }

    @SuppressWarnings("unchecked") // The output keys of a job were sorted, so they are comparable.
    private static Class<? extends WritableComparable<?>> keyClass(SequenceFile.Reader in) {
      return (Class<? extends WritableComparable<?>>) in.getKeyClass();
    }

    /** Lines are in the order of the text before their first tab. */
    void addLines(InputStream in) throws IOException {
      byte[] line = new byte[1 << 10];
      int length = 0;
      int keyBytes = -1;
      for (int next = in.read(); next >= 0; next = in.read()) {
        if (next == '\n') {
          addKeyed(line, keyBytes < 0 ? length : keyBytes, length);
          length = 0;
          keyBytes = -1;
          continue;
        }
        if (next == '\t' && keyBytes < 0) {
          keyBytes = length;
        }
        if (length == line.length) {
          line = Arrays.copyOf(line, 2 * length);
        }
        line[length++] = (byte) next;
      }
      if (length > 0) {
        addKeyed(line, keyBytes < 0 ? length : keyBytes, length);
      }
    }

    void addFixed(InputStream in, int recordBytes) throws IOException {
      byte[] record = new byte[recordBytes];
      for (int read = in.readNBytes(record, 0, recordBytes);
          read > 0;
          read = in.readNBytes(record, 0, recordBytes)) {
        if (read < recordBytes) {
          throw new IOException(
              "after " + records + " records of " + recordBytes + " bytes, " + read + " are left");
        }
        addKeyed(record, Generate.KEY_BYTES, recordBytes);
      }
    }

    private void addKeyed(byte[] record, int keyBytes, int length) {
      sorted &=
          lastKey == null
              || WritableComparator.compareBytes(lastKey, 0, lastKey.length, record, 0, keyBytes)
                  <= 0;
      lastKey = Arrays.copyOf(record, keyBytes);
      add(record, length);
    }

    String json(String name) {
      return String.format(
          "{\"file\": \"%s\", \"records\": %d, \"bytes\": %d, \"sum\": \"%016x\", \"crc\": \"%08x\","
              + " \"sorted\": %b}",
          name, records, bytes, sum, inOrder.getValue(), sorted);
    }
  }
}
