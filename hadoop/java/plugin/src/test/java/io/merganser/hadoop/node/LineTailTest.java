package io.merganser.hadoop.node;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.util.LineReader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LineTailTest {
  private final Configuration conf = new Configuration();

  @TempDir Path dir;

  private LineTail tail(byte[] file, int end, Optional<byte[]> delimiter)
      throws IOException, OnHostException {
    Path path = dir.resolve("in");
    Files.write(path, file);
    FileSlice split = new FileSlice(new org.apache.hadoop.fs.Path(path.toUri()), 0, end);
    LineTail tail = LineTail.of(split, file.length, delimiter, conf);
    assertArrayEquals(Arrays.copyOfRange(file, end, end + tail.bytes().length), tail.bytes());
    assertEquals(end + tail.bytes().length == file.length, tail.atEndOfFile());
    return tail;
  }

  /**
   * The bytes from the end of a split that Hadoop reads as one line, which it skips in the next.
   */
  private static int line(byte[] file, int end, Optional<byte[]> delimiter) throws IOException {
    var in = new ByteArrayInputStream(file, end, file.length - end);
    LineReader reader =
        delimiter.isPresent() ? new LineReader(in, delimiter.get()) : new LineReader(in);
    return reader.readLine(new Text());
  }

  @Test
  void aTailEndsWithTheLineThatHadoopReadsThere() throws Exception {
    Random random = new Random(2);
    byte[] alphabet = {'a', 'b', '\n', '\r', (byte) 0xEF};
    for (int round = 0; round < 300; round++) {
      byte[] file = new byte[1 + random.nextInt(12_000)];
      // Some files have long lines, which take several reads.
      int rare = 1 << random.nextInt(13);
      for (int i = 0; i < file.length; i++) {
        file[i] = random.nextInt(rare) == 0 ? alphabet[random.nextInt(5)] : (byte) 'x';
      }
      int end = random.nextInt(file.length + 1);
      for (Optional<byte[]> delimiter :
          java.util.List.of(
              Optional.<byte[]>empty(),
              Optional.of(new byte[] {'b'}),
              Optional.of(new byte[] {'b', '\n'}))) {
        LineTail tail = tail(file, end, delimiter);
        int line = line(file, end, delimiter);
        assertTrue(tail.bytes().length >= line, "cut off");
        if (!tail.atEndOfFile()) {
          // With a long delimiter, one that begins in the split may have to be passed.
          int passed = delimiter.isPresent() ? line(file, end + line, delimiter) : 0;
          int shortest = Math.max(4096, 2 * (line + passed + 1));
          assertTrue(tail.bytes().length <= shortest, "read too much");
          // Of a CR at the end it isn't known yet whether LF follows.
          assertTrue(tail.bytes().length > line || file[end + line - 1] != '\r');
        }
      }
    }
  }

  @Test
  void aCrAtTheEndOfAReadIsReadOn() throws Exception {
    byte[] file = "x".repeat(10_000).getBytes(StandardCharsets.US_ASCII);
    file[4095] = '\r';
    assertEquals(8192, tail(file, 0, Optional.empty()).bytes().length);
    file[4094] = '\r';
    assertEquals(4096, tail(file, 0, Optional.empty()).bytes().length);
  }

  @Test
  void atTheEndOfTheFileThereIsNoTail() throws Exception {
    byte[] file = {'a', '\n'};
    assertEquals(0, tail(file, 2, Optional.empty()).bytes().length);
  }

  @Test
  void aLineThatDoesntEndSoonIsLeftToTheHost() {
    byte[] file = new byte[LineTail.BYTES_MAX + 2];
    OnHostException e = assertThrows(OnHostException.class, () -> tail(file, 1, Optional.empty()));
    assertEquals(HostReason.LONG_LINE, e.reason());
  }

  @Test
  void aFileThatIsGoneIsLeftToTheHost() {
    FileSlice gone =
        new FileSlice(new org.apache.hadoop.fs.Path(dir.resolve("gone").toUri()), 0, 1);
    OnHostException e =
        assertThrows(OnHostException.class, () -> LineTail.of(gone, 10, Optional.empty(), conf));
    assertEquals(HostReason.HDFS_FAILED, e.reason());
  }
}
