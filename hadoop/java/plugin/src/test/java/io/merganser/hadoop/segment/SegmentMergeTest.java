package io.merganser.hadoop.segment;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.order.KeyOrder;
import io.merganser.hadoop.segment.SpillFile.KeyValue;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.DataOutputBuffer;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.WritableUtils;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SegmentMergeTest {
  private static final KeyOrder TEXT = KeyOrder.parse("text");
  private static final int MEMORY = 1 << 20;

  @TempDir Path dir;

  @Test
  void mergesTwoSpills() throws IOException {
    Segment first = spill("a", List.of(record("apple", 1), record("cherry", 2)));
    Segment second = spill("b", List.of(record("banana", 3), record("cherry", 4)));
    List<KeyValue> merged =
        List.of(record("apple", 1), record("banana", 3), record("cherry", 2), record("cherry", 4));
    byte[] expected = SpillFile.bytes(dir.resolve("expected"), merged);
    List<Segment> segments = List.of(first, second);
    assertEquals(expected.length, SegmentMerge.partLength(segments));
    assertEquals(expected.length - 4, SegmentMerge.rawLength(segments));
    assertArrayEquals(expected, merge(TEXT, segments, MEMORY, 1000));
  }

  @Test
  void mergesNothing() throws IOException {
    byte[] empty = SpillFile.bytes(dir.resolve("expected"), List.of());
    assertArrayEquals(empty, merge(TEXT, List.of(), MEMORY, 10));
    assertArrayEquals(
        empty, merge(TEXT, List.of(spill("a", List.of()), spill("b", List.of())), MEMORY, 1));
  }

  /** Every way to distribute up to three records with two keys over up to three spills. */
  @Test
  void mergesAllTinyInputs() throws IOException {
    for (int spills = 1; spills <= 3; spills++) {
      for (int records = 0; records <= 3; records++) {
        int ways = (int) Math.pow(2 * spills, records);
        for (int way = 0; way < ways; way++) {
          List<List<KeyValue>> dealt = new ArrayList<>();
          for (int i = 0; i < spills; i++) {
            dealt.add(new ArrayList<>());
          }
          int rest = way;
          for (int i = 0; i < records; i++) {
            dealt.get(rest % spills).add(record(rest / spills % 2 == 0 ? "" : "k", i));
            rest /= 2 * spills;
          }
          assertMerges(TEXT, dealt, 4096 * 4, 7, "dealt " + way + " to " + spills);
        }
      }
    }
  }

  @Test
  void mergesRandomSpillsAsAStableSort() throws IOException {
    Random random = new Random(11);
    for (int round = 0; round < 100; round++) {
      int spills = 1 + random.nextInt(12);
      int distinct = 1 + random.nextInt(50);
      // Some values and keys are larger than a segment's buffer.
      List<List<KeyValue>> dealt = new ArrayList<>();
      for (int i = 0; i < spills; i++) {
        List<KeyValue> records = new ArrayList<>();
        for (int n = random.nextInt(40); n > 0; n--) {
          String key = "k".repeat(random.nextInt(20) == 0 ? 9000 : 12) + random.nextInt(distinct);
          byte[] value = new byte[random.nextInt(10) == 0 ? 20000 : random.nextInt(200)];
          random.nextBytes(value);
          records.add(KeyValue.of(new Text(key), new BytesWritable(value)));
        }
        dealt.add(records);
      }
      assertMerges(TEXT, dealt, 4096 * spills, 1 + random.nextInt(5000), "round " + round);
    }
  }

  @Test
  void skipsToAnyByte() throws IOException {
    List<Segment> segments = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      segments.add(spill("s" + i, List.of(record("a", i), record("b", 10 + i))));
    }
    byte[] whole = merge(TEXT, segments, MEMORY, 100);
    for (int skip = 0; skip <= whole.length; skip++) {
      try (SegmentMerge merge = new SegmentMerge(TEXT, segments, MEMORY)) {
        merge.skip(skip);
        assertArrayEquals(Arrays.copyOfRange(whole, skip, whole.length), readAll(merge, 5));
      }
    }
    try (SegmentMerge merge = new SegmentMerge(TEXT, segments, MEMORY)) {
      assertThrows(IOException.class, () -> merge.skip(whole.length + 1));
    }
  }

  @Test
  void damageOfAnyByteIsFound() throws IOException {
    Path file = dir.resolve("spill");
    List<Segment> segments =
        SpillFile.write(
            file,
            List.of(
                List.of(record("apple", 1), record("banana", 200)),
                List.of(record("apricot", 3)),
                List.of()));
    byte[] bytes = Files.readAllBytes(file);
    for (int at = 0; at < bytes.length; at++) {
      for (int bit = 0; bit < 8; bit++) {
        byte[] damaged = bytes.clone();
        damaged[at] ^= (byte) (1 << bit);
        Files.write(file, damaged);
        DamagedSegmentException e =
            assertThrows(
                DamagedSegmentException.class,
                () -> merge(TEXT, segments, MEMORY, 64),
                "byte " + at + ", bit " + bit);
        assertTrue(e.getMessage().startsWith(file.toString()), e.getMessage());
      }
    }
    for (int length = 0; length < bytes.length; length++) {
      Files.write(file, Arrays.copyOf(bytes, length));
      assertThrows(IOException.class, () -> merge(TEXT, segments, MEMORY, 64), "cut to " + length);
    }
    Files.delete(file);
    assertThrows(IOException.class, () -> merge(TEXT, segments, MEMORY, 64));
  }

  @Test
  void theLastBytesWaitForEveryChecksum() throws IOException {
    Segment good = spill("good", List.of(record("b", 1)));
    Segment bad = spill("bad", List.of(record("a", 2)));
    byte[] bytes = Files.readAllBytes(bad.file());
    bytes[bytes.length - 1] ^= 1;
    Files.write(bad.file(), bytes);
    byte[] into = new byte[(int) SegmentMerge.partLength(List.of(good, bad))];
    try (SegmentMerge merge = new SegmentMerge(TEXT, List.of(good, bad), MEMORY)) {
      assertThrows(DamagedSegmentException.class, () -> merge.read(into, 0, into.length));
    }
  }

  @Test
  void refusesMalformedKeys() throws IOException {
    Segment segment = spill("spill", List.of(KeyValue.of(new IntWritable(-1), new Text(""))));
    DamagedSegmentException e =
        assertThrows(
            DamagedSegmentException.class,
            () -> merge(KeyOrder.parse("text,null"), List.of(segment), MEMORY, 64));
    assertTrue(e.getMessage().contains("a key has"), e.getMessage());
  }

  @Test
  void needsAPagePerSegment() throws IOException {
    List<Segment> segments = new ArrayList<>();
    for (int i = 0; i < 5; i++) {
      segments.add(spill("s" + i, List.of(record("a", i))));
    }
    IOException e =
        assertThrows(IOException.class, () -> new SegmentMerge(TEXT, segments, 4096 * 5 - 1));
    assertTrue(e.getMessage().contains("at least 20480"), e.getMessage());
    merge(TEXT, segments, 4096 * 5, 64);
  }

  @Test
  void closesEveryFile() throws IOException {
    Openings openings = new Openings();
    List<Segment> segments = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      segments.add(spill("s" + i, List.of(record("a", i), record("b", i))));
    }
    try (SegmentMerge merge = SegmentMerge.withinMemory(TEXT, segments, MEMORY, openings)) {
      merge.read(new byte[9], 0, 9);
    }
    segments.add(new Segment(dir.resolve("gone"), 0, 20, 24));
    assertThrows(
        IOException.class,
        () -> SegmentMerge.withinMemory(TEXT, segments, MEMORY, openings).close());
    openings.assertAllClosed(6);
  }

  /** Audit finding F22: a sparse file of 4 KiB on disk claimed a key of 1.2 GB. */
  @Test
  void f22_aKeyBeyondTheMemoryIsDamageAndTakesNoHeap() throws IOException {
    Segment hostile = sparseKey("hostile", 1_200_000_000);
    Segment good = spill("good", List.of(record("a", 1)));
    Openings openings = new Openings();
    long before = allocatedBytes();
    DamagedSegmentException e =
        assertThrows(
            DamagedSegmentException.class,
            () -> SegmentMerge.withinMemory(TEXT, List.of(good, hostile), MEMORY, openings));
    long allocated = allocatedBytes() - before;
    assertTrue(e.getMessage().contains("a key needs 12000000"), e.getMessage());
    assertTrue(allocated < 2 * MEMORY, allocated + " bytes of heap for a merge of " + MEMORY);
    openings.assertAllClosed(2);
  }

  /** Audit finding F22: without heap for a buffer, the files that are open must be closed. */
  @Test
  void f22_anErrorClosesEveryFile() throws IOException {
    Openings openings = new Openings();
    List<Segment> segments = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      segments.add(spill("s" + i, List.of(record("a", i))));
    }
    SegmentMerge.Opener failing =
        file -> {
          if (file.endsWith("s2")) {
            throw new OutOfMemoryError("as if the heap were full");
          }
          return openings.open(file);
        };
    assertThrows(
        OutOfMemoryError.class, () -> SegmentMerge.withinMemory(TEXT, segments, MEMORY, failing));
    openings.assertAllClosed(2);
    // No array has room for this key, and the heap of the tests has none either.
    segments.set(2, sparseKey("huge", Integer.MAX_VALUE - 16));
    assertThrows(OutOfMemoryError.class, () -> merge(TEXT, segments, MEMORY, 64));
  }

  /** Keys larger than a segment's buffer share the rest of the memory, one after the other. */
  @Test
  void f22_longKeysWithinTheMemoryAreMerged() throws IOException {
    int spills = 4;
    int keyBytes = 100_000;
    int memory = spills * 16_384 + 2 * keyBytes + 8_192;
    List<KeyValue> all = new ArrayList<>();
    List<Segment> segments = new ArrayList<>();
    for (int i = 0; i < spills; i++) {
      List<KeyValue> records = new ArrayList<>();
      for (char c = 'a'; c <= 'e'; c++) {
        records.add(record(c + "" + i, i));
        records.add(record((c + "" + i).repeat(keyBytes / 2), i));
      }
      segments.add(spill("s" + i, records));
      all.addAll(records);
    }
    all.sort((a, b) -> compare(TEXT, a, b));
    byte[] expected = SpillFile.bytes(dir.resolve("expected"), all);
    Openings openings = new Openings();
    try (SegmentMerge merge = SegmentMerge.withinMemory(TEXT, segments, 4 * memory, openings)) {
      assertArrayEquals(expected, readAll(merge, 1000));
    }
    // All four cursors hold a long key at a time; memory for two of them is too little.
    DamagedSegmentException e =
        assertThrows(
            DamagedSegmentException.class,
            () -> {
              try (SegmentMerge merge =
                  SegmentMerge.withinMemory(TEXT, segments, memory, openings)) {
                readAll(merge, 1000);
              }
            });
    assertTrue(e.getMessage().contains("for long keys"), e.getMessage());
    openings.assertAllClosed(2 * spills);
    // One segment with many long keys gives the memory of each back before the next.
    Segment many = segments.get(0);
    byte[] same = Files.readAllBytes(many.file());
    try (SegmentMerge merge =
        SegmentMerge.withinMemory(TEXT, List.of(many), keyBytes + 30_000, openings)) {
      assertArrayEquals(same, readAll(merge, 1000));
    }
  }

  /** A segment of one record, which has a key of {@code keyBytes} zeros and no value. */
  private Segment sparseKey(String name, int keyBytes) throws IOException {
    Path file = dir.resolve(name);
    DataOutputBuffer head = new DataOutputBuffer();
    WritableUtils.writeVInt(head, keyBytes);
    WritableUtils.writeVInt(head, 0);
    long rawLength = head.getLength() + (long) keyBytes + Segment.END_LENGTH;
    try (RandomAccessFile out = new RandomAccessFile(file.toFile(), "rw")) {
      out.write(head.getData(), 0, head.getLength());
      out.setLength(rawLength + Segment.CRC_LENGTH);
    }
    return new Segment(file, 0, rawLength, rawLength + Segment.CRC_LENGTH);
  }

  /** Bytes of heap that this thread has allocated so far. */
  private static long allocatedBytes() {
    return ((com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean())
        .getCurrentThreadAllocatedBytes();
  }

  /** Opens files and remembers them. */
  private static final class Openings implements SegmentMerge.Opener {
    private final List<RandomAccessFile> opened = new ArrayList<>();

    @Override
    public RandomAccessFile open(Path file) throws IOException {
      RandomAccessFile in = new RandomAccessFile(file.toFile(), "r");
      opened.add(in);
      return in;
    }

    void assertAllClosed(int count) {
      assertEquals(count, opened.size());
      for (RandomAccessFile in : opened) {
        assertThrows(IOException.class, in::length);
      }
    }
  }

  @Test
  void segmentsHaveLengthsThatFit() {
    for (long[] bad :
        new long[][] {{-1, 2, 6}, {0, 1, 5}, {0, 2, 7}, {0, -3, 1}, {Long.MAX_VALUE, 2, 6}}) {
      assertThrows(IllegalArgumentException.class, () -> new Segment(dir, bad[0], bad[1], bad[2]));
    }
  }

  /** Sorts and writes each spill, and compares the merge with a stable sort of all records. */
  private void assertMerges(
      KeyOrder order, List<List<KeyValue>> spills, int memory, int piece, String what)
      throws IOException {
    List<KeyValue> all = new ArrayList<>();
    List<Segment> segments = new ArrayList<>();
    for (int i = 0; i < spills.size(); i++) {
      List<KeyValue> records = new ArrayList<>(spills.get(i));
      records.sort((a, b) -> compare(order, a, b));
      segments.add(spill("s" + i, records));
      all.addAll(records);
    }
    all.sort((a, b) -> compare(order, a, b));
    byte[] expected = SpillFile.bytes(dir.resolve("expected"), all);
    assertEquals(expected.length, SegmentMerge.partLength(segments), what);
    assertArrayEquals(expected, merge(order, segments, memory, piece), what);
  }

  private static int compare(KeyOrder order, KeyValue a, KeyValue b) {
    return order.compare(a.key(), 0, a.key().length, b.key(), 0, b.key().length);
  }

  private Segment spill(String name, List<KeyValue> records) throws IOException {
    return SpillFile.write(dir.resolve(name), List.of(records)).get(0);
  }

  private static KeyValue record(String key, int value) {
    return KeyValue.of(new Text(key), new IntWritable(value));
  }

  private static byte[] merge(KeyOrder order, List<Segment> segments, int memory, int piece)
      throws IOException {
    try (SegmentMerge merge = new SegmentMerge(order, segments, memory)) {
      return readAll(merge, piece);
    }
  }

  private static byte[] readAll(SegmentMerge merge, int piece) throws IOException {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    byte[] part = new byte[piece];
    for (int count; (count = merge.read(part, 0, piece)) >= 0; ) {
      all.write(part, 0, count);
    }
    return all.toByteArray();
  }
}
