package io.merganser.hadoop.reduce;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.segment.SpillFile;
import io.merganser.hadoop.segment.SpillFile.KeyValue;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.IntUnaryOperator;
import org.apache.hadoop.io.DataInputBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MergedRecordsTest {
  @TempDir private Path folder;
  private long counted = -1;

  /** Returns bytes in pieces; {@code piece} chooses the size of each, up to a given most. */
  private static final class Bytes implements MergedRecords.Source {
    private final byte[] bytes;
    private final IntUnaryOperator piece;
    private int at;
    private int closed;

    Bytes(byte[] bytes, IntUnaryOperator piece) {
      this.bytes = bytes;
      this.piece = piece;
    }

    @Override
    public int read(byte[] into, int offset, int length) {
      int most = Math.min(length, bytes.length - at);
      if (most == 0) {
        return -1;
      }
      int count = piece.applyAsInt(most);
      System.arraycopy(bytes, at, into, offset, count);
      at += count;
      return count;
    }

    @Override
    public void close() {
      closed++;
    }
  }

  private MergedRecords over(Bytes bytes) {
    return new MergedRecords(bytes, bytes.bytes.length - 4, records -> counted = records);
  }

  private byte[] segment(List<KeyValue> entries) throws IOException {
    return Files.readAllBytes(
        SpillFile.write(folder.resolve("segment"), List.of(entries)).get(0).file());
  }

  private static byte[] current(DataInputBuffer buffer) {
    return Arrays.copyOfRange(buffer.getData(), buffer.getPosition(), buffer.getLength());
  }

  private void assertRecords(List<KeyValue> expected, MergedRecords records) throws IOException {
    for (KeyValue entry : expected) {
      assertTrue(records.next());
      assertArrayEquals(entry.key(), current(records.getKey()));
      assertArrayEquals(entry.value(), current(records.getValue()));
    }
    assertFalse(records.next());
    assertEquals(expected.size(), counted);
  }

  @Test
  void returnsTheRecordsThatWereWritten() throws IOException {
    List<KeyValue> entries =
        List.of(
            new KeyValue(new byte[] {1}, new byte[] {2, 3}),
            new KeyValue(new byte[0], new byte[0]),
            new KeyValue(new byte[200], new byte[70_000]));
    Bytes bytes = new Bytes(segment(entries), most -> most);
    MergedRecords records = over(bytes);
    assertEquals(0, records.getProgress().get());
    assertRecords(entries, records);
    assertEquals(1, records.getProgress().get());
    assertEquals(1, bytes.closed);
  }

  @Test
  void staysAtItsEnd() throws IOException {
    Bytes bytes = new Bytes(segment(List.of(new KeyValue(new byte[1], new byte[1]))), most -> most);
    MergedRecords records = over(bytes);
    assertTrue(records.next());
    for (int again = 0; again < 3; again++) {
      assertFalse(records.next());
      assertEquals(0, current(records.getKey()).length);
      assertEquals(0, current(records.getValue()).length);
    }
    records.close();
    assertFalse(records.next());
    assertEquals(1, bytes.closed);
    assertEquals(1, counted);
  }

  @Test
  void aSegmentWithoutRecordsReturnsNone() throws IOException {
    assertRecords(List.of(), over(new Bytes(segment(List.of()), most -> most)));
  }

  @Test
  void readsRecordsHoweverTheBytesCome() throws IOException {
    for (long seed = 0; seed < 20; seed++) {
      Random random = new Random(seed);
      List<KeyValue> entries = new ArrayList<>();
      for (int record = 0; record < 400; record++) {
        int longest = random.nextInt(50) == 0 ? 700_000 : random.nextBoolean() ? 3 : 4_000;
        entries.add(new KeyValue(bytes(random, longest / 2), bytes(random, longest)));
      }
      byte[] segment = segment(entries);
      int largest = List.of(1, 7, 5_000, 1 << 20).get((int) seed % 4);
      // Byte by byte would take too long for all of them.
      IntUnaryOperator piece =
          most -> Math.min(most, largest == 1 && random.nextInt(64) > 0 ? 999 : largest);
      assertRecords(entries, over(new Bytes(segment, piece)));
    }
  }

  private static byte[] bytes(Random random, int longest) {
    byte[] bytes = new byte[random.nextInt(longest + 1)];
    random.nextBytes(bytes);
    return bytes;
  }

  @Test
  void refusesAStreamCutAnywhere() throws IOException {
    byte[] segment =
        segment(
            List.of(
                new KeyValue(new byte[3], new byte[300]), new KeyValue(new byte[1], new byte[2])));
    for (int length = 0; length < segment.length - 4; length++) {
      byte[] cut = Arrays.copyOf(segment, length);
      MergedRecords records =
          new MergedRecords(new Bytes(cut, most -> most), segment.length - 4, count -> {});
      IOException thrown =
          assertThrows(
              IOException.class,
              () -> {
                while (records.next()) {
                  continue;
                }
              },
              "cut to " + length);
      assertTrue(thrown.getMessage().contains("of 314 bytes"), thrown.getMessage());
    }
  }

  @Test
  void refusesImpossibleLengths() {
    // A key of -3, a key of 2^56 and more, a value of -2.
    for (byte[] head : new byte[][] {{-3, 1}, {-128, 1, 1}, {-119, 1}, {0, -2}}) {
      byte[] bytes = Arrays.copyOf(head, 30);
      MergedRecords records = over(new Bytes(bytes, most -> most));
      assertThrows(IOException.class, records::next, Arrays.toString(head));
    }
  }

  @Test
  void refusesAnEndMarkerBeforeTheEnd() throws IOException {
    byte[] segment = segment(List.of());
    MergedRecords records = new MergedRecords(new Bytes(segment, most -> most), 3, count -> {});
    assertTrue(assertThrows(IOException.class, records::next).getMessage().contains("after 2"));
  }

  @Test
  void closedEarlyItGivesNothingMore() throws IOException {
    Bytes bytes =
        new Bytes(
            segment(
                List.of(
                    new KeyValue(new byte[1], new byte[1]),
                    new KeyValue(new byte[1], new byte[1]))),
            most -> most);
    MergedRecords records = over(bytes);
    assertTrue(records.next());
    records.close();
    records.close();
    assertEquals(1, bytes.closed);
    assertEquals(1, counted);
    assertTrue(assertThrows(IOException.class, records::next).getMessage().contains("closed"));
  }
}
