package io.merganser.hadoop.order;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.config.Keys;
import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.hadoop.io.BooleanWritable;
import org.apache.hadoop.io.ByteWritable;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.DataOutputBuffer;
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
import org.apache.hadoop.mapred.JobConf;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class KeyOrderTest {
  private static final int KEYS = 250;

  static Stream<Arguments> hadoopsOwnKeys() {
    return Stream.of(
        keys("text", Text.class, random -> new Text(bytes(random))),
        keys("bytes", BytesWritable.class, random -> new BytesWritable(bytes(random))),
        keys("int", IntWritable.class, random -> new IntWritable((int) number(random))),
        keys("long", LongWritable.class, random -> new LongWritable(number(random))),
        keys("vint", VIntWritable.class, random -> new VIntWritable((int) number(random))),
        keys("vlong", VLongWritable.class, random -> new VLongWritable(number(random))),
        keys("float", FloatWritable.class, random -> new FloatWritable(real(random))),
        keys("double", DoubleWritable.class, random -> new DoubleWritable(realDouble(random))),
        keys("boolean", BooleanWritable.class, random -> new BooleanWritable(random.nextBoolean())),
        keys("null", NullWritable.class, random -> NullWritable.get()),
        keys("fixed:16", MD5Hash.class, random -> MD5Hash.digest(bytes(random))));
  }

  private static Arguments keys(
      String description, Class<? extends Writable> type, Function<Random, Writable> key) {
    return Arguments.of(description, type, key);
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("hadoopsOwnKeys")
  void ordersAsHadoopsOwnComparator(
      String description, Class<?> type, Function<Random, Writable> key) throws IOException {
    JobConf job = new JobConf(false);
    job.setMapOutputKeyClass(type);
    KeyOrder order = JobKeyOrder.of(job).orElseThrow();
    assertEquals(description, order.description());
    assertFalse(JobKeyOrder.isRegistered(job));
    List<byte[]> keys = serialized(key);
    assertOrders(order, job.getOutputKeyComparator(), keys, 1);
    assertOrders(KeyOrder.parse(description + ":desc"), job.getOutputKeyComparator(), keys, -1);
  }

  @Test
  void knowsTheDescendingComparatorOfLong() throws IOException {
    JobConf job = new JobConf(false);
    job.setMapOutputKeyClass(LongWritable.class);
    job.setOutputKeyComparatorClass(LongWritable.DecreasingComparator.class);
    KeyOrder order = JobKeyOrder.of(job).orElseThrow();
    assertEquals("long:desc", order.description());
    assertOrders(
        order, job.getOutputKeyComparator(), serialized(r -> new LongWritable(number(r))), 1);
  }

  @Test
  void knowsNoOrderOfOtherComparators() {
    JobConf job = new JobConf(false);
    job.setMapOutputKeyClass(ByteWritable.class);
    assertEquals(Optional.empty(), JobKeyOrder.of(job));
    // A comparator for keys of another class: it compares these keys, but not by their fields.
    job.setMapOutputKeyClass(BytesWritable.class);
    job.setOutputKeyComparatorClass(Text.Comparator.class);
    assertEquals(Optional.empty(), JobKeyOrder.of(job));
    // A class that compares itself and has no registration.
    JobConf own = new JobConf(false);
    own.setMapOutputKeyClass(Reading.class);
    assertEquals(Optional.empty(), JobKeyOrder.of(own));
  }

  @Test
  void knowsNoOrderOfKeysThatAreWrittenInAnotherForm() {
    JobConf job = new JobConf(false);
    job.setMapOutputKeyClass(Text.class);
    job.set("io.serializations", OtherSerialization.class.getName());
    assertEquals(Optional.empty(), JobKeyOrder.of(job));
  }

  @Test
  void takesARegisteredOrder() throws IOException {
    JobConf job = new JobConf(false);
    job.setMapOutputKeyClass(Reading.class);
    job.set(Keys.ORDER_PREFIX + Reading.class.getName(), "text,int:desc,double,bytes");
    KeyOrder order = JobKeyOrder.of(job).orElseThrow();
    assertTrue(JobKeyOrder.isRegistered(job));
    assertOrders(order, job.getOutputKeyComparator(), serialized(Reading::new), 1);

    job.setOutputKeyComparatorClass(ReadingComparator.class);
    assertEquals(
        Optional.empty(), JobKeyOrder.of(job), "a comparator comes before the class of the key");
    job.set(Keys.ORDER_PREFIX + ReadingComparator.class.getName(), " raw:desc ");
    assertEquals("raw:desc", JobKeyOrder.of(job).orElseThrow().description());
    job.set(Keys.ORDER_PREFIX + ReadingComparator.class.getName(), "texts");
    IllegalArgumentException e =
        assertThrows(IllegalArgumentException.class, () -> JobKeyOrder.of(job));
    assertTrue(e.getMessage().startsWith(Keys.ORDER_PREFIX + ReadingComparator.class.getName()));
  }

  @Test
  void compositesOrderByTheirFieldsInTurn() throws IOException {
    Random random = new Random(7);
    List<Function<Random, Writable>> types =
        List.of(
            r -> new Text(bytes(r)),
            r -> new BytesWritable(bytes(r)),
            r -> new IntWritable((int) number(r)),
            r -> new LongWritable(number(r)),
            r -> new VIntWritable((int) number(r)),
            r -> new VLongWritable(number(r)),
            r -> new FloatWritable(real(r)),
            r -> new DoubleWritable(realDouble(r)),
            r -> new BooleanWritable(r.nextBoolean()),
            r -> NullWritable.get());
    String[] words = "text bytes int long vint vlong float double boolean null".split(" ");
    for (int round = 0; round < 200; round++) {
      int fields = 1 + random.nextInt(4);
      int[] type = random.ints(fields, 0, words.length).toArray();
      boolean[] descending = new boolean[fields];
      StringBuilder description = new StringBuilder();
      for (int i = 0; i < fields; i++) {
        descending[i] = random.nextBoolean();
        description.append(i == 0 ? "" : ",").append(words[type[i]]);
        description.append(descending[i] ? ":desc" : "");
      }
      KeyOrder order = KeyOrder.parse(description.toString());
      assertEquals(description.toString(), order.description());
      Writable[][] keys = new Writable[20][fields];
      for (Writable[] key : keys) {
        for (int i = 0; i < fields; i++) {
          key[i] = types.get(type[i]).apply(random);
        }
      }
      for (Writable[] a : keys) {
        for (Writable[] b : keys) {
          int expected = 0;
          for (int i = 0; i < fields && expected == 0; i++) {
            byte[] af = serialize(a[i]);
            byte[] bf = serialize(b[i]);
            expected =
                comparator(a[i]).compare(af, 0, af.length, bf, 0, bf.length)
                    * (descending[i] ? -1 : 1);
          }
          assertCompares(order, serialize(a), serialize(b), expected);
        }
      }
    }
  }

  @Test
  void refusesKeysThatEndBeforeTheirFields() throws IOException {
    byte[] whole = serialize(new Text("key"), new IntWritable(7), new VLongWritable(1L << 40));
    KeyOrder order = KeyOrder.parse("text,int,vlong,fixed:2");
    byte[] key = Arrays.copyOf(whole, whole.length + 2);
    assertEquals(0, order.compare(key, 0, key.length, key, 0, key.length));
    for (int length = 0; length < key.length; length++) {
      int cut = length;
      assertThrows(
          MalformedKeyException.class, () -> order.compare(key, 0, cut, key, 0, cut), "at " + cut);
    }
    // A length that is too large or negative.
    byte[] long1 = {(byte) 0x8F, 100, 'a'};
    byte[] negative = {-2, 'a'};
    for (byte[] bad : List.of(long1, negative)) {
      assertThrows(
          MalformedKeyException.class,
          () -> KeyOrder.parse("text,null").compare(bad, 0, bad.length, bad, 0, bad.length));
      assertThrows(
          MalformedKeyException.class,
          () -> KeyOrder.parse("text,null").prefix(bad, 0, bad.length));
    }
  }

  static Stream<Arguments> sharedTable() throws IOException {
    return Files.readAllLines(Path.of("../../../core/sort/src/key/writable/keys.txt")).stream()
        .filter(row -> !row.startsWith("#"))
        .map(row -> Arguments.of((Object[]) row.split(" +")));
  }

  /**
   * Malformed keys for the native merge too, and for Hadoop's comparators, which find no errors.
   */
  @ParameterizedTest(name = "{0} {1} {3} {2}")
  @MethodSource("sharedTable")
  void comparesAsTheSharedTableSays(String description, String hexA, String hexB, String expected) {
    byte[] a = HexFormat.of().parseHex(hexA.replace("-", ""));
    byte[] b = HexFormat.of().parseHex(hexB.replace("-", ""));
    KeyOrder order = KeyOrder.parse(description);
    if (expected.equals("error")) {
      assertThrows(
          MalformedKeyException.class, () -> order.compare(a, 0, a.length, b, 0, b.length));
      assertThrows(
          MalformedKeyException.class, () -> order.compare(b, 0, b.length, a, 0, a.length));
      return;
    }
    int sign = "<=>".indexOf(expected) - 1;
    assertCompares(order, a, b, sign);
    Map<String, WritableComparator> hadoops =
        Map.of(
            "text", new Text.Comparator(),
            "bytes", new BytesWritable.Comparator(),
            "boolean", new BooleanWritable.Comparator(),
            "fixed:16", new MD5Hash.Comparator(),
            "int", new IntWritable.Comparator());
    WritableComparator hadoop = hadoops.get(description);
    if (hadoop != null) {
      assertEquals(sign, Integer.signum(hadoop.compare(a, 0, a.length, b, 0, b.length)));
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "text,",
        ",text",
        "Text",
        "text:asc",
        "text:desc:desc",
        "int:4",
        "fixed",
        "fixed:0",
        "fixed:-1",
        "fixed:9999999999",
        "raw,int",
        "text int",
        "text, int",
        "desc"
      })
  void refusesMalformedDescriptions(String description) {
    IllegalArgumentException e =
        assertThrows(IllegalArgumentException.class, () -> KeyOrder.parse(description));
    assertTrue(e.getMessage().contains("\"" + description + "\""), e.getMessage());
  }

  private static void assertOrders(
      KeyOrder order, RawComparator<?> expected, List<byte[]> keys, int sign) {
    for (byte[] a : keys) {
      for (byte[] b : keys) {
        assertCompares(order, a, b, sign * expected.compare(a, 0, a.length, b, 0, b.length));
      }
    }
  }

  /**
   * Compares in place and inside other bytes, both ways, and checks that prefixes keep the order.
   */
  private static void assertCompares(KeyOrder order, byte[] a, byte[] b, int expected) {
    int sign = Integer.signum(expected);
    byte[] inside = new byte[b.length + 5];
    Arrays.fill(inside, (byte) 0x5A);
    System.arraycopy(b, 0, inside, 3, b.length);
    assertEquals(sign, order.compare(a, 0, a.length, inside, 3, b.length));
    assertEquals(-sign, order.compare(inside, 3, b.length, a, 0, a.length));
    int byPrefix =
        Long.compareUnsigned(order.prefix(a, 0, a.length), order.prefix(inside, 3, b.length));
    assertTrue(byPrefix == 0 || Integer.signum(byPrefix) == sign);
  }

  private static List<byte[]> serialized(Function<Random, Writable> key) throws IOException {
    Random random = new Random(42);
    List<byte[]> keys = new ArrayList<>();
    for (int i = 0; i < KEYS; i++) {
      keys.add(serialize(key.apply(random)));
    }
    return keys;
  }

  private static byte[] serialize(Writable... fields) throws IOException {
    DataOutputBuffer out = new DataOutputBuffer();
    for (Writable field : fields) {
      field.write(out);
    }
    return Arrays.copyOf(out.getData(), out.getLength());
  }

  private static WritableComparator comparator(Writable field) {
    return WritableComparator.get(
        field.getClass().asSubclass(WritableComparable.class), new JobConf(false));
  }

  /** Empty, short, or long with a shared prefix; lengths on both sides of a longer VInt. */
  private static byte[] bytes(Random random) {
    int[] lengths = {0, 1, 2, 7, 8, 9, 127, 128, 255, 256, 300};
    byte[] bytes = new byte[lengths[random.nextInt(lengths.length)]];
    Arrays.fill(bytes, (byte) 'p');
    for (int i = 0; i < Math.min(bytes.length, 2); i++) {
      int at = bytes.length - 1 - random.nextInt(Math.min(bytes.length, 3));
      bytes[at] = (byte) random.nextInt(256);
    }
    return bytes;
  }

  /** Numbers of every width, with both signs, and at the edges between widths. */
  private static long number(Random random) {
    long[] edges = {0, -1, 127, 128, -112, -113, 255, 256, Integer.MAX_VALUE, Integer.MIN_VALUE};
    return switch (random.nextInt(3)) {
      case 0 -> edges[random.nextInt(edges.length)];
      case 1 -> random.nextLong() >> random.nextInt(64);
      default -> random.nextBoolean() ? Long.MAX_VALUE : Long.MIN_VALUE;
    };
  }

  private static float real(Random random) {
    int[] bits = {0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7FC12345, 0xFFC00001, 1};
    return random.nextBoolean()
        ? Float.intBitsToFloat(bits[random.nextInt(bits.length)])
        : Float.intBitsToFloat(random.nextInt());
  }

  private static double realDouble(Random random) {
    long[] bits = {
      0, 1L << 63, 0x7FF0L << 48, 0xFFF0L << 48, 0x7FF8L << 48, 0x7FF8000000012345L, 0xFFF8L << 48
    };
    return random.nextBoolean()
        ? Double.longBitsToDouble(bits[random.nextInt(bits.length)])
        : Double.longBitsToDouble(random.nextLong());
  }

  /** A key of four fields that compares itself. */
  public static final class Reading implements WritableComparable<Reading> {
    private final Text station = new Text();
    private final IntWritable day = new IntWritable();
    private final DoubleWritable value = new DoubleWritable();
    private final BytesWritable raw = new BytesWritable();

    /** Used by Hadoop, which then reads the fields. */
    public Reading() {}

    Reading(Random random) {
      station.set(bytes(random));
      day.set(random.nextInt(3));
      value.set(realDouble(random));
      raw.set(new BytesWritable(bytes(random)));
    }

    @Override
    public void write(DataOutput out) throws IOException {
      station.write(out);
      day.write(out);
      value.write(out);
      raw.write(out);
    }

    @Override
    public void readFields(DataInput in) throws IOException {
      station.readFields(in);
      day.readFields(in);
      value.readFields(in);
      raw.readFields(in);
    }

    @Override
    public int compareTo(Reading other) {
      return Comparator.<Reading, Text>comparing(r -> r.station)
          .thenComparing(r -> r.day, Comparator.reverseOrder())
          .thenComparing(r -> r.value)
          .thenComparing(r -> r.raw)
          .compare(this, other);
    }
  }

  /** A comparator with a class of its own. */
  public static final class ReadingComparator extends WritableComparator {
    /** Used by Hadoop. */
    public ReadingComparator() {
      super(Reading.class, true);
    }
  }

  /** Another way to write Text. */
  public static final class OtherSerialization
      implements org.apache.hadoop.io.serializer.Serialization<Text> {
    @Override
    public boolean accept(Class<?> c) {
      return true;
    }

    @Override
    public org.apache.hadoop.io.serializer.Serializer<Text> getSerializer(Class<Text> c) {
      throw new UnsupportedOperationException();
    }

    @Override
    public org.apache.hadoop.io.serializer.Deserializer<Text> getDeserializer(Class<Text> c) {
      throw new UnsupportedOperationException();
    }
  }
}
