package io.merganser.hadoop.segment;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.segment.SpillFile.KeyValue;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.Text;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SpillScannerTest {
  @TempDir Path dir;

  /** A spill and what its maker says about it. */
  private record Spill(byte[] bytes, long records, long[] parts) {
    void scan(int piece) throws DamagedSegmentException {
      scan(bytes, piece);
    }

    void scan(byte[] some, int piece) throws DamagedSegmentException {
      SpillScanner scanner = new SpillScanner(parts.length);
      for (int at = 0; at < some.length; at += piece) {
        scanner.accept(some, at, Math.min(piece, some.length - at));
      }
      scanner.end(records, parts);
      assertEquals(records, scanner.records());
      assertEquals(some.length, scanner.bytes());
    }
  }

  private Spill spill(List<List<KeyValue>> segments) throws IOException {
    Path file = dir.resolve("spill");
    List<Segment> written = SpillFile.write(file, segments);
    return new Spill(
        Files.readAllBytes(file),
        segments.stream().mapToLong(List::size).sum(),
        written.stream().mapToLong(Segment::partLength).toArray());
  }

  private Spill small() throws IOException {
    return spill(
        List.of(
            List.of(
                KeyValue.of(new Text("apple"), new IntWritable(1)),
                KeyValue.of(new Text("plum"), new IntWritable(-1))),
            List.of(),
            List.of(KeyValue.of(new Text(""), new IntWritable(0)))));
  }

  @Test
  void aSpillOfHadoopIsRightInPiecesOfAnySize() throws IOException {
    Spill spill = small();
    for (int piece = 1; piece <= spill.bytes().length; piece++) {
      spill.scan(piece);
    }
  }

  @Test
  void randomSpillsAreRight() throws IOException {
    Random random = new Random(5);
    for (int round = 0; round < 50; round++) {
      List<List<KeyValue>> segments = new ArrayList<>();
      for (int partition = random.nextInt(4); partition >= 0; partition--) {
        List<KeyValue> records = new ArrayList<>();
        for (int i = random.nextInt(50); i > 0; i--) {
          // Lengths of one to four bytes.
          byte[] value = new byte[random.nextInt(1 << random.nextInt(18))];
          random.nextBytes(value);
          records.add(
              KeyValue.of(new Text("k".repeat(random.nextInt(400))), new BytesWritable(value)));
        }
        segments.add(records);
      }
      spill(segments).scan(1 + random.nextInt(100_000));
    }
  }

  @Test
  void recordsWithoutAnyByteAreRecords() throws IOException {
    KeyValue nothing = new KeyValue(new byte[0], new byte[0]);
    Spill spill = spill(List.of(List.of(nothing, nothing, nothing)));
    assertEquals(3, spill.records());
    spill.scan(1);
  }

  @Test
  void everyChangedByteIsFound() throws IOException {
    Spill spill = small();
    for (int at = 0; at < spill.bytes().length; at++) {
      for (int bit = 0; bit < Byte.SIZE; bit++) {
        byte[] changed = spill.bytes().clone();
        changed[at] ^= (byte) (1 << bit);
        assertThrows(DamagedSegmentException.class, () -> spill.scan(changed, 7), "byte " + at);
      }
    }
  }

  @Test
  void everyCutAndEveryAdditionIsFound() throws IOException {
    Spill spill = small();
    for (int length = 0; length < spill.bytes().length; length++) {
      byte[] cut = Arrays.copyOf(spill.bytes(), length);
      assertThrows(DamagedSegmentException.class, () -> spill.scan(cut, 7), "length " + length);
    }
    byte[] longer = Arrays.copyOf(spill.bytes(), spill.bytes().length + 1);
    assertThrows(DamagedSegmentException.class, () -> spill.scan(longer, 7));
  }

  @Test
  void anotherSpillThanItsMakerSaysIsFound() throws IOException {
    Spill spill = small();
    Spill more = new Spill(spill.bytes(), spill.records() + 1, spill.parts());
    assertThrows(DamagedSegmentException.class, () -> more.scan(7));
    long[] swapped = spill.parts().clone();
    swapped[0]++;
    swapped[1]--;
    Spill other = new Spill(spill.bytes(), spill.records(), swapped);
    assertThrows(DamagedSegmentException.class, () -> other.scan(7));
  }

  @Test
  void randomBytesNeverHarm() {
    Random random = new Random(11);
    int wrong = 0;
    for (int round = 0; round < 20_000; round++) {
      byte[] bytes = new byte[random.nextInt(40)];
      random.nextBytes(bytes);
      SpillScanner scanner = new SpillScanner(1);
      try {
        scanner.accept(bytes, 0, bytes.length);
        scanner.end(0, new long[1]);
      } catch (DamagedSegmentException e) {
        wrong++;
      }
    }
    assertTrue(wrong == 20_000, "found " + wrong);
  }
}
