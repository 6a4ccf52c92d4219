package io.merganser.hadoop.reduce;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.merganser.hadoop.nativemerge.NativeLibrary;
import io.merganser.hadoop.order.KeyOrder;
import io.merganser.hadoop.segment.Segment;
import io.merganser.hadoop.segment.SegmentMerge;
import io.merganser.hadoop.segment.SpillFile;
import io.merganser.hadoop.segment.SpillFile.KeyValue;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.hadoop.io.BooleanWritable;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.DataInputBuffer;
import org.apache.hadoop.io.DoubleWritable;
import org.apache.hadoop.io.FloatWritable;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.MD5Hash;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.RawComparator;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.VIntWritable;
import org.apache.hadoop.io.VLongWritable;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.io.WritableComparable;
import org.apache.hadoop.io.WritableComparator;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Our two merges, each compared with a sort of all records by Hadoop's comparators. */
class FileMergeTest {
  private static final int MEMORY_BYTES = 8 << 20;

  @TempDir private Path folder;

  /** The code that merges. */
  enum Way {
    NATIVE,
    JAVA;

    FileMerge merge(KeyOrder order, List<Segment> files, boolean keep) throws IOException {
      if (this == JAVA) {
        return FileMerge.inJava(order, files, MEMORY_BYTES, keep);
      }
      assumeTrue(NativeLibrary.whyNot().isEmpty());
      return FileMerge.natively(order, files, MEMORY_BYTES, keep);
    }

    MergedRecords records(KeyOrder order, List<Segment> files) throws IOException {
      return new MergedRecords(
          merge(order, files, false), SegmentMerge.rawLength(files), records -> {});
    }
  }

  /** A class of keys: our description, Hadoop's comparator, and a source of random keys. */
  private record Keys(String order, RawComparator<?> comparator, Function<Random, Writable> key) {
    @Override
    public String toString() {
      return order;
    }

    byte[] draw(Random random) {
      return serialized(key.apply(random));
    }
  }

  private static byte[] serialized(Writable... parts) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      for (Writable part : parts) {
        part.write(out);
      }
    } catch (IOException e) {
      throw new AssertionError(e);
    }
    return bytes.toByteArray();
  }

  private static Keys keys(
      String order,
      Class<? extends WritableComparable<?>> keyClass,
      Function<Random, Writable> key) {
    return new Keys(order, WritableComparator.get(keyClass), key);
  }

  private static byte[] bytes(Random random, int longest) {
    byte[] bytes = new byte[random.nextInt(longest + 1)];
    random.nextBytes(bytes);
    return bytes;
  }

  static Stream<Keys> keys() {
    return Stream.of(
        keys("text", Text.class, r -> new Text("k" + r.nextInt(500))),
        keys("text", Text.class, r -> new Text("a prefix that all keys share " + r.nextInt(99))),
        keys("bytes", BytesWritable.class, r -> new BytesWritable(bytes(r, 20))),
        keys("int", IntWritable.class, r -> new IntWritable(r.nextInt() >> r.nextInt(31))),
        keys("long", LongWritable.class, r -> new LongWritable(r.nextLong() >> r.nextInt(63))),
        new Keys(
            "long:desc",
            new LongWritable.DecreasingComparator(),
            r -> new LongWritable(r.nextInt(300) - 150)),
        keys("vint", VIntWritable.class, r -> new VIntWritable(r.nextInt() >> r.nextInt(31))),
        keys("vlong", VLongWritable.class, r -> new VLongWritable(r.nextLong() >> r.nextInt(63))),
        keys("float", FloatWritable.class, r -> new FloatWritable(r.nextInt(99) / 7f - 7)),
        keys("double", DoubleWritable.class, r -> new DoubleWritable(r.nextGaussian())),
        keys("boolean", BooleanWritable.class, r -> new BooleanWritable(r.nextBoolean())),
        keys("fixed:16", MD5Hash.class, r -> MD5Hash.digest(bytes(r, 1))),
        keys("null", NullWritable.class, r -> NullWritable.get()));
  }

  private List<List<KeyValue>> draw(Keys keys, int files, int most, Random random) {
    RawComparator<?> comparator = keys.comparator();
    Comparator<KeyValue> byKey =
        (a, b) -> comparator.compare(a.key(), 0, a.key().length, b.key(), 0, b.key().length);
    List<List<KeyValue>> drawn = new ArrayList<>();
    for (int file = 0; file < files; file++) {
      List<KeyValue> entries = new ArrayList<>();
      for (int count = random.nextInt(most + 1); count > 0; count--) {
        // The value names the source of the entry, which makes the order of equal keys visible.
        String value = file + "/" + count + "x".repeat(random.nextInt(90));
        entries.add(new KeyValue(keys.draw(random), value.getBytes(StandardCharsets.UTF_8)));
      }
      entries.sort(byKey);
      drawn.add(entries);
    }
    return drawn;
  }

  private List<Segment> write(List<List<KeyValue>> drawn) throws IOException {
    List<Segment> files = new ArrayList<>();
    for (List<KeyValue> entries : drawn) {
      files.add(
          SpillFile.write(folder.resolve("map_" + files.size() + ".out"), List.of(entries)).get(0));
    }
    return files;
  }

  private static byte[] all(FileMerge merge) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    byte[] piece = new byte[10_000];
    for (int read; (read = merge.read(piece, 0, piece.length)) >= 0; ) {
      bytes.write(piece, 0, read);
    }
    return bytes.toByteArray();
  }

  @ParameterizedTest
  @MethodSource("keys")
  void mergesAsASortOfEverythingWould(Keys keys) throws IOException {
    Random random = new Random(keys.order().hashCode());
    for (int files : new int[] {1, 2, 3, 10, 64, 200}) {
      List<List<KeyValue>> drawn = draw(keys, files, files > 60 ? 20 : 300, random);
      List<KeyValue> expected = new ArrayList<>();
      drawn.forEach(expected::addAll);
      RawComparator<?> comparator = keys.comparator();
      expected.sort(
          (a, b) -> comparator.compare(a.key(), 0, a.key().length, b.key(), 0, b.key().length));
      byte[] whole =
          Files.readAllBytes(
              SpillFile.write(folder.resolve("expected"), List.of(expected)).get(0).file());
      List<Segment> segments = write(drawn);
      for (Way way : Way.values()) {
        try (FileMerge merge = way.merge(KeyOrder.parse(keys.order()), segments, true)) {
          assertArrayEquals(whole, all(merge), way + " of " + files);
        }
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void mergesByADescriptionOfSeveralFields(Way way) throws IOException {
    KeyOrder order = KeyOrder.parse("text,int:desc");
    List<KeyValue> first = List.of(entry("a", 9, "0"), entry("a", 1, "1"), entry("c", 0, "2"));
    List<KeyValue> second = List.of(entry("a", 5, "3"), entry("b", 7, "4"), entry("c", 0, "5"));
    MergedRecords records = way.records(order, write(List.of(first, second)));
    StringBuilder values = new StringBuilder();
    while (records.next()) {
      values.append((char) records.getValue().getData()[records.getValue().getPosition()]);
    }
    assertEquals("031425", values.toString());
  }

  private static KeyValue entry(String text, int number, String value) {
    return new KeyValue(
        serialized(new Text(text), new IntWritable(number)),
        value.getBytes(StandardCharsets.UTF_8));
  }

  /** All cases of up to three files of up to two records with two keys. */
  @ParameterizedTest
  @EnumSource
  void mergesEveryTinyInput(Way way) throws IOException {
    List<List<Integer>> contents =
        List.of(List.of(), List.of(0), List.of(1), List.of(0, 0), List.of(0, 1), List.of(1, 1));
    KeyOrder order = KeyOrder.parse("int");
    for (List<Integer> a : contents) {
      for (List<Integer> b : contents) {
        for (List<Integer> c : contents) {
          List<Segment> files = new ArrayList<>();
          List<int[]> expected = new ArrayList<>();
          for (List<Integer> content : List.of(a, b, c)) {
            List<KeyValue> entries = new ArrayList<>();
            for (int key : content) {
              expected.add(new int[] {key, expected.size()});
              entries.add(
                  new KeyValue(
                      serialized(new IntWritable(key)), new byte[] {(byte) (expected.size() - 1)}));
            }
            files.add(
                SpillFile.write(folder.resolve(files.size() + ".out"), List.of(entries)).get(0));
          }
          expected.sort(Comparator.comparingInt(entry -> entry[0]));
          MergedRecords records = way.records(order, files);
          for (int[] entry : expected) {
            assertTrue(records.next());
            DataInputBuffer key = records.getKey();
            assertEquals(entry[0], WritableComparator.readInt(key.getData(), key.getPosition()));
            DataInputBuffer value = records.getValue();
            assertEquals(entry[1], value.getData()[value.getPosition()]);
          }
          assertFalse(records.next());
          assertFalse(records.next());
        }
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void mergesRecordsLargerThanAnyBuffer(Way way) throws IOException {
    List<List<KeyValue>> drawn = new ArrayList<>();
    for (int file = 0; file < 3; file++) {
      byte[] value = new byte[5 << 20];
      Arrays.fill(value, (byte) file);
      drawn.add(List.of(new KeyValue(serialized(new IntWritable(file)), value)));
    }
    MergedRecords records = way.records(KeyOrder.parse("int"), write(drawn));
    for (List<KeyValue> file : drawn) {
      assertTrue(records.next());
      DataInputBuffer value = records.getValue();
      assertArrayEquals(
          file.get(0).value(),
          Arrays.copyOfRange(value.getData(), value.getPosition(), value.getLength()));
    }
    assertFalse(records.next());
  }

  /** Keys that differ only at their ends; those compared at once are larger than the memory. */
  @ParameterizedTest
  @EnumSource
  void mergesKeysLargerThanAnyBuffer(Way way) throws IOException {
    Function<Random, Writable> key =
        random -> {
          byte[] bytes = new byte[300_000 + 100_000 * random.nextInt(6)];
          bytes[bytes.length - 1] = (byte) random.nextInt(3);
          return new Text(bytes);
        };
    Keys keys = keys("text", Text.class, key);
    List<List<KeyValue>> drawn = draw(keys, 24, 4, new Random(8));
    List<KeyValue> expected = new ArrayList<>();
    drawn.forEach(expected::addAll);
    expected.sort(
        (a, b) ->
            keys.comparator().compare(a.key(), 0, a.key().length, b.key(), 0, b.key().length));
    byte[] whole =
        Files.readAllBytes(
            SpillFile.write(folder.resolve("expected"), List.of(expected)).get(0).file());
    assertTrue(whole.length > 2 * MEMORY_BYTES);
    try (FileMerge merge = way.merge(KeyOrder.parse("text"), write(drawn), true)) {
      assertArrayEquals(whole, all(merge));
    }
  }

  @ParameterizedTest
  @EnumSource
  void aBitThatFlippedAnywhereIsAnErrorThatNamesTheFile(Way way) throws IOException {
    Keys keys = keys().findFirst().orElseThrow();
    KeyOrder order = KeyOrder.parse(keys.order());
    List<Segment> files = write(draw(keys, 3, 8, new Random(5)));
    Path damaged = files.get(1).file();
    byte[] bytes = Files.readAllBytes(damaged);
    for (int at = 0; at < bytes.length; at++) {
      byte[] flipped = bytes.clone();
      flipped[at] ^= 1 << (at % 8);
      Files.write(damaged, flipped);
      IOException thrown =
          assertThrows(
              IOException.class,
              () -> {
                try (FileMerge merge = way.merge(order, files, true)) {
                  all(merge);
                }
              },
              "at " + at);
      assertTrue(thrown.getMessage().contains("map_1.out"), thrown.getMessage());
    }
  }

  @ParameterizedTest
  @EnumSource
  void aFileThatIsCutOffOrGoneIsAnErrorThatNamesIt(Way way) throws IOException {
    Keys keys = keys().findFirst().orElseThrow();
    KeyOrder order = KeyOrder.parse(keys.order());
    List<Segment> files = write(draw(keys, 3, 50, new Random(6)));
    Path file = files.get(2).file();
    byte[] bytes = Files.readAllBytes(file);
    Files.write(file, Arrays.copyOf(bytes, bytes.length / 2));
    assertNames(file, way, order, files);
    Files.delete(file);
    assertNames(file, way, order, files);
  }

  private static void assertNames(Path file, Way way, KeyOrder order, List<Segment> files) {
    IOException thrown =
        assertThrows(
            IOException.class,
            () -> {
              try (FileMerge merge = way.merge(order, files, true)) {
                all(merge);
              }
            });
    String sentence = thrown.toString();
    assertTrue(sentence.contains(file.toString()), sentence);
  }

  @ParameterizedTest
  @EnumSource
  void removesItsFilesWhenItIsClosedUnlessTheyAreKept(Way way) throws IOException {
    Keys keys = keys().findFirst().orElseThrow();
    KeyOrder order = KeyOrder.parse(keys.order());
    List<Segment> files = write(draw(keys, 5, 50, new Random(7)));
    try (FileMerge merge = way.merge(order, files, true)) {
      assertTrue(merge.read(new byte[10], 0, 10) > 0);
    }
    for (Segment file : files) {
      assertTrue(Files.exists(file.file()));
    }
    try (FileMerge merge = way.merge(order, files, false)) {
      assertTrue(merge.read(new byte[10], 0, 10) > 0);
    }
    for (Segment file : files) {
      assertFalse(Files.exists(file.file()));
    }
  }
}
