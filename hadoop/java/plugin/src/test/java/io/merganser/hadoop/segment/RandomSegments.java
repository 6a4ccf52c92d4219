package io.merganser.hadoop.segment;

import io.merganser.hadoop.segment.SpillFile.KeyValue;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.Text;

/** Files for measuring merges, with keys of ten random letters and random values. */
public final class RandomSegments {
  private static final int KEY_BYTES = 10;

  private RandomSegments() {}

  /**
   * Writes {@code count} files of one segment each, together {@code bytes} of keys and values.
   *
   * @param record bytes of a key and its value
   */
  public static List<Segment> write(Path folder, long bytes, int record, int count)
      throws IOException {
    Random random = new Random(record + count);
    List<Segment> files = new ArrayList<>();
    for (int file = 0; file < count; file++) {
      List<KeyValue> records = new ArrayList<>();
      for (long left = bytes / count; left > 0; left -= record) {
        byte[] key = new byte[KEY_BYTES];
        for (int at = 0; at < KEY_BYTES; at++) {
          key[at] = (byte) (' ' + random.nextInt(95));
        }
        byte[] value = new byte[record - KEY_BYTES];
        random.nextBytes(value);
        records.add(KeyValue.of(new Text(key), new BytesWritable(value)));
      }
      records.sort((a, b) -> Arrays.compareUnsigned(a.key(), b.key()));
      Path path = folder.resolve("segment_" + file + ".out");
      files.add(SpillFile.write(path, List.of(records)).get(0));
    }
    return files;
  }
}
