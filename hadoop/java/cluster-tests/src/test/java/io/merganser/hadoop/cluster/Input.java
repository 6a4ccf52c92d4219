package io.merganser.hadoop.cluster;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.SequenceFile.CompressionType;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.io.compress.DefaultCodec;

/** Writes the input of a job: one file per map task, with the same bytes each time. */
@FunctionalInterface
interface Input {
  void write(Path folder) throws IOException;

  /** Fills a key and a value for record {@code number}, counted over all files. */
  interface Record<K, V> {
    void fill(Random random, long number, K key, V value);
  }

  /** A line of text. */
  interface Line {
    String text(Random random, long number);
  }

  /** Sequence files of records that {@code record} fills. */
  static <K extends Writable, V extends Writable> Input sequence(
      int files, int recordsPerFile, K key, V value, Record<K, V> record) {
    return sequence(files, recordsPerFile, CompressionType.NONE, key, value, record);
  }

  /** Sequence files with compressed values (or blocks). */
  static <K extends Writable, V extends Writable> Input sequence(
      int files,
      int recordsPerFile,
      CompressionType compression,
      K key,
      V value,
      Record<K, V> record) {
    return folder -> {
      Configuration conf = new Configuration();
      Random random = new Random(8191);
      long number = 0;
      for (int file = 0; file < files; file++) {
        var path = new org.apache.hadoop.fs.Path(folder.resolve(name(file)).toUri());
        try (SequenceFile.Writer writer =
            SequenceFile.createWriter(
                conf,
                SequenceFile.Writer.file(path),
                SequenceFile.Writer.keyClass(key.getClass()),
                SequenceFile.Writer.valueClass(value.getClass()),
                SequenceFile.Writer.compression(compression, new DefaultCodec()))) {
          for (int i = 0; i < recordsPerFile; i++) {
            record.fill(random, number++, key, value);
            writer.append(key, value);
          }
        }
      }
    };
  }

  /** Text files. */
  static Input lines(int files, int linesPerFile, Line line) {
    return folder -> {
      Files.createDirectories(folder);
      Random random = new Random(127);
      long number = 0;
      for (int file = 0; file < files; file++) {
        try (var writer =
            Files.newBufferedWriter(folder.resolve(name(file)), StandardCharsets.UTF_8)) {
          for (int i = 0; i < linesPerFile; i++) {
            writer.write(line.text(random, number++));
            writer.write('\n');
          }
        }
      }
    };
  }

  /** The name of a file of an input, counted from 0. */
  static String name(int file) {
    return String.format("in-%03d", file);
  }

  /** {@code length} random bytes. */
  static byte[] bytes(Random random, int length) {
    byte[] bytes = new byte[length];
    random.nextBytes(bytes);
    return bytes;
  }

  /** One of some thousand words; few of them are frequent and most are rare. */
  static String word(Random random) {
    int rank = (int) (3000 * Math.pow(random.nextDouble(), 3));
    return "w" + Integer.toString(rank * 7919 + 100_000, 36);
  }
}
