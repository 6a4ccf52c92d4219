package io.merganser.hadoop.cluster;

import java.io.DataOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.DigestOutputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.util.ReflectionUtils;

/** The output of a job, for comparison with that of another job. */
final class Output {
  private Output() {}

  /**
   * A digest of each part: of its bytes or, in a sequence file, of its records in order, since
   * every sequence file begins with random bytes.
   */
  static Map<String, String> digests(Path folder) throws IOException {
    Map<String, String> digests = new TreeMap<>();
    try (Stream<Path> parts = Files.list(folder)) {
      for (Path part : (Iterable<Path>) parts::iterator) {
        String name = part.getFileName().toString();
        if (name.startsWith("part-")) {
          digests.put(name, digest(part));
        }
      }
    }
    return digests;
  }

  private static String digest(Path part) throws IOException {
    MessageDigest digest;
    try {
      digest = MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
    try (DataOutputStream out =
        new DataOutputStream(new DigestOutputStream(OutputStream.nullOutputStream(), digest))) {
      if (isSequenceFile(part)) {
        records(part, out);
      } else {
        Files.copy(part, out);
      }
    }
    return HexFormat.of().formatHex(digest.digest());
  }

  private static boolean isSequenceFile(Path part) throws IOException {
    try (var in = Files.newInputStream(part)) {
      return Arrays.equals(in.readNBytes(3), new byte[] {'S', 'E', 'Q'});
    }
  }

  private static void records(Path part, DataOutputStream out) throws IOException {
    Configuration conf = new Configuration();
    var path = new org.apache.hadoop.fs.Path(part.toUri());
    try (SequenceFile.Reader reader =
        new SequenceFile.Reader(conf, SequenceFile.Reader.file(path))) {
      Writable key = (Writable) ReflectionUtils.newInstance(reader.getKeyClass(), conf);
      Writable value = (Writable) ReflectionUtils.newInstance(reader.getValueClass(), conf);
      while (reader.next(key, value)) {
        key.write(out);
        value.write(out);
      }
    }
  }

  /** The lines of all parts, in order. */
  static List<String> lines(Path folder) throws IOException {
    try (Stream<Path> parts = Files.list(folder)) {
      List<String> lines = new java.util.ArrayList<>();
      for (Path part :
          parts.filter(p -> p.getFileName().toString().startsWith("part-")).sorted().toList()) {
        lines.addAll(Files.readAllLines(part));
      }
      return lines;
    }
  }
}
