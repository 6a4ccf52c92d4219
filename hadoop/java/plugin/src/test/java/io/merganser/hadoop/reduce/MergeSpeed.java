package io.merganser.hadoop.reduce;

import io.merganser.hadoop.nativemerge.NativeLibrary;
import io.merganser.hadoop.order.KeyOrder;
import io.merganser.hadoop.segment.RandomSegments;
import io.merganser.hadoop.segment.Segment;
import io.merganser.hadoop.segment.SegmentMerge;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.DataInputBuffer;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.Merger;
import org.apache.hadoop.mapred.RawKeyValueIterator;
import org.apache.hadoop.mapred.Reporter;
import org.apache.hadoop.util.Progress;

/**
 * Measures how fast a reducer can read records that are merged from files: natively, in Java, and
 * by Hadoop's merge of the same files in one pass. Run by {@code hadoop/java/plugin/merge-speed
 * FOLDER MB}. The files are read from the page cache.
 */
public final class MergeSpeed {
  private static final int ROUNDS = 5;
  private static final int MEMORY_BYTES = 64 << 20;

  private MergeSpeed() {}

  private interface Opener {
    RawKeyValueIterator open() throws IOException;
  }

  /** Takes a folder for the files, and the megabytes of each case. */
  public static void main(String[] arguments) throws IOException {
    Path folder = Path.of(arguments[0]);
    long bytes = Long.parseLong(arguments[1]) << 20;
    System.out.println(
        "native library: " + NativeLibrary.whyNot().map(why -> "no, " + why).orElse("loaded"));
    System.out.println("record  files  native MB/s  Java MB/s  Hadoop MB/s   (medians of 5)");
    for (int record : new int[] {100, 4096}) {
      for (int files : new int[] {10, 100}) {
        measure(folder, bytes, record, files);
      }
    }
  }

  private static void measure(Path folder, long bytes, int record, int count) throws IOException {
    List<Segment> files = RandomSegments.write(folder, bytes, record, count);
    long raw = SegmentMerge.rawLength(files);
    KeyOrder order = KeyOrder.parse("text");
    List<Opener> ways =
        List.of(
            () ->
                new MergedRecords(
                    FileMerge.natively(order, files, MEMORY_BYTES, true), raw, records -> {}),
            () ->
                new MergedRecords(
                    FileMerge.inJava(order, files, MEMORY_BYTES, true), raw, records -> {}),
            () -> stock(files));
    double[][] rates = new double[ways.size()][ROUNDS];
    long[] checks = new long[ways.size()];
    // The first round is not counted, because the JVM compiles in it.
    for (int round = -1; round < ROUNDS; round++) {
      for (int way = 0; way < rates.length; way++) {
        long start = System.nanoTime();
        checks[way] = drain(ways.get(way).open());
        double rate = raw * 1e3 / (System.nanoTime() - start);
        if (round >= 0) {
          rates[way][round] = rate;
        }
      }
    }
    if (checks[0] != checks[1] || checks[0] != checks[2]) {
      throw new IllegalStateException("the merges differ");
    }
    for (double[] rate : rates) {
      Arrays.sort(rate);
    }
    int middle = ROUNDS / 2;
    System.out.printf(
        Locale.ROOT,
        "%6d %6d %12.0f %10.0f %12.0f%n",
        record,
        count,
        rates[0][middle],
        rates[1][middle],
        rates[2][middle]);
    for (Segment file : files) {
      Files.delete(file.file());
    }
  }

  @SuppressWarnings("unchecked") // Hadoop declares its comparators raw.
  private static RawKeyValueIterator stock(List<Segment> files) throws IOException {
    JobConf job = new JobConf();
    FileSystem local = FileSystem.getLocal(job).getRaw();
    List<Merger.Segment<Text, BytesWritable>> segments = new ArrayList<>();
    for (Segment file : files) {
      segments.add(
          new Merger.Segment<>(
              job, local, new org.apache.hadoop.fs.Path(file.file().toUri()), null, true));
    }
    return Merger.merge(
        job,
        local,
        Text.class,
        BytesWritable.class,
        segments,
        segments.size(),
        new org.apache.hadoop.fs.Path("scratch"),
        new Text.Comparator(),
        Reporter.NULL,
        null,
        null,
        new Progress());
  }

  /** Reads every record as a deserializer does, and returns a sum over the bytes. */
  private static long drain(RawKeyValueIterator records) throws IOException {
    long sum = 0;
    byte[] seen = new byte[1 << 16];
    while (records.next()) {
      sum = sum * 31 + copy(records.getKey(), seen);
      sum = sum * 31 + copy(records.getValue(), seen);
    }
    records.close();
    return sum;
  }

  private static long copy(DataInputBuffer from, byte[] into) {
    int length = from.getLength() - from.getPosition();
    System.arraycopy(from.getData(), from.getPosition(), into, 0, length);
    return length * 31L + into[length - 1];
  }
}
