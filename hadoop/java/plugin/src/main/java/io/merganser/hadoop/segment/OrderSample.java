package io.merganser.hadoop.segment;

import io.merganser.hadoop.order.KeyOrder;
import io.merganser.hadoop.order.MalformedKeyException;
import java.io.IOException;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.DataInputBuffer;
import org.apache.hadoop.io.RawComparator;
import org.apache.hadoop.mapred.IFile;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.MRConfig;

/**
 * Compares the registered order of a job's keys with the job's comparator, on keys of segments.
 * With a wrong registration a merge would silently give keys out of order.
 *
 * <p>The sample has each key of the smallest segments, in their order, and ends after {@value
 * #KEYS_MAX} keys. Small segments come first because they are read to their end: their keys span
 * the whole range, and a difference may show in the middle of the range only.
 */
public final class OrderSample {
  private static final int KEYS_MAX = 1000;

  private final KeyOrder order;
  private final RawComparator<?> comparator;
  private int keysLeft = KEYS_MAX;
  private byte[] last;

  private OrderSample(KeyOrder order, RawComparator<?> comparator) {
    this.order = order;
    this.comparator = comparator;
  }

  /**
   * Says how an order differs from the job's comparator. Empty if the sample shows no difference,
   * which proves nothing about other keys.
   *
   * @throws IOException if a segment can't be read; the message names its file
   */
  public static Optional<String> difference(JobConf job, KeyOrder order, List<Segment> segments)
      throws IOException {
    // No read-ahead, because the readers are left before their end.
    JobConf conf = new JobConf(job);
    conf.setBoolean(MRConfig.MAPRED_IFILE_READAHEAD, false);
    OrderSample sample = new OrderSample(order, job.getOutputKeyComparator());
    List<Segment> smallestFirst =
        segments.stream()
            .filter(segment -> segment.partLength() > Segment.EMPTY_PART_LENGTH)
            .sorted(Comparator.comparingLong(Segment::partLength))
            .limit(KEYS_MAX)
            .toList();
    for (Segment segment : smallestFirst) {
      if (!sample.agreesOn(segment, conf)) {
        return Optional.of(
            order
                + " is registered, but "
                + sample.comparator.getClass().getName()
                + " compares otherwise");
      }
    }
    return Optional.empty();
  }

  /** Compares each key of a segment with the key before it, until the sample is full. */
  private boolean agreesOn(Segment segment, JobConf conf) throws IOException {
    if (keysLeft == 0) {
      return true;
    }
    FileSystem fs = FileSystem.getLocal(conf).getRaw();
    try (FSDataInputStream in = fs.open(new Path(segment.file().toUri()))) {
      in.seek(segment.offset());
      IFile.Reader<Object, Object> reader =
          new IFile.Reader<>(conf, in, segment.partLength(), null, null);
      DataInputBuffer key = new DataInputBuffer();
      DataInputBuffer value = new DataInputBuffer();
      for (; keysLeft > 0 && reader.nextRawKey(key); keysLeft--) {
        byte[] next = Arrays.copyOf(key.getData(), key.getLength());
        if (last != null && !agree(last, next)) {
          return false;
        }
        last = next;
        reader.nextRawValue(value);
      }
      return true;
    } catch (IOException e) {
      throw new IOException(segment.file() + ": " + e.getMessage(), e);
    }
  }

  /** Whether the two agree; the order may distinguish keys that are equal for the comparator. */
  private boolean agree(byte[] a, byte[] b) {
    int expected = comparator.compare(a, 0, a.length, b, 0, b.length);
    try {
      int found = order.compare(a, 0, a.length, b, 0, b.length);
      return expected == 0 || Integer.signum(expected) == Integer.signum(found);
    } catch (MalformedKeyException e) {
      return false;
    }
  }
}
