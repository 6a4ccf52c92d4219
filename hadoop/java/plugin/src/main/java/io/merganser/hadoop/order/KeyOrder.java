package io.merganser.hadoop.order;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The order of serialized keys, given by a description that the merge process understands too.
 *
 * <p>A description lists the fields of a serialized key in order, separated by commas, each {@code
 * TYPE} or {@code TYPE:desc}:
 *
 * <ul>
 *   <li>{@code text}: a length in Hadoop's variable-length form, then that many bytes (Text)
 *   <li>{@code bytes}: a length of 4 bytes, then that many bytes (BytesWritable)
 *   <li>{@code int}, {@code long}: 4 and 8 bytes, signed
 *   <li>{@code vint}, {@code vlong}: Hadoop's variable-length form of 1 to 9 bytes, signed
 *   <li>{@code float}, {@code double}: IEEE 754; −0 before 0, and every NaN last
 *   <li>{@code boolean}: one byte
 *   <li>{@code fixed:N}: N bytes
 *   <li>{@code raw}: the rest of the key; only as the last field
 *   <li>{@code null}: no bytes
 * </ul>
 *
 * <p>Integers and floating-point numbers are big-endian. Bytes compare unsigned, and a prefix comes
 * before longer bytes. Bytes after the last field don't count. Keys that are equal in all fields
 * are equal. A {@code text}, {@code bytes} or {@code boolean} that is the only field is compared as
 * Hadoop's own comparator does it: the value of its length is ignored, and the rest of the key is
 * compared.
 */
public final class KeyOrder {
  private enum Type {
    TEXT,
    BYTES,
    INT,
    LONG,
    VINT,
    VLONG,
    FLOAT,
    DOUBLE,
    BOOLEAN,
    FIXED,
    RAW,
    NULL;

    String word() {
      return name().toLowerCase(java.util.Locale.ROOT);
    }
  }

  /** One field; {@code size} is only used by {@link Type#FIXED}. */
  private record Field(Type type, int size, boolean descending) {
    @Override
    public String toString() {
      return type.word() + (type == Type.FIXED ? ":" + size : "") + (descending ? ":desc" : "");
    }
  }

  private final Field[] fields;
  private final String description;

  private KeyOrder(List<Field> fields) {
    this.fields = fields.toArray(new Field[0]);
    this.description = String.join(",", fields.stream().map(Field::toString).toList());
  }

  /**
   * The order of a description.
   *
   * @throws IllegalArgumentException if it is malformed; the message names the field and what is
   *     allowed
   */
  public static KeyOrder parse(String description) {
    List<Field> fields = new ArrayList<>();
    for (String field : description.split(",", -1)) {
      if (!fields.isEmpty() && fields.get(fields.size() - 1).type == Type.RAW) {
        throw new IllegalArgumentException(
            "key order \""
                + description
                + "\": nothing can follow raw, which takes the rest of the key");
      }
      fields.add(parseField(field, description));
    }
    return new KeyOrder(fields);
  }

  private static Field parseField(String field, String description) {
    List<String> words = new ArrayList<>(List.of(field.split(":", -1)));
    boolean descending = words.size() > 1 && words.get(words.size() - 1).equals("desc");
    if (descending) {
      words.remove(words.size() - 1);
    }
    for (Type type : Type.values()) {
      if (!type.word().equals(words.get(0))) {
        continue;
      }
      if (type != Type.FIXED && words.size() == 1) {
        return new Field(type, 0, descending);
      }
      if (type == Type.FIXED && words.size() == 2 && words.get(1).matches("[1-9][0-9]{0,8}")) {
        return new Field(type, Integer.parseInt(words.get(1)), descending);
      }
    }
    throw new IllegalArgumentException(
        "key order \""
            + description
            + "\": \""
            + field
            + "\" is not a field; a field is text, bytes, int, long, vint, vlong, float, double,"
            + " boolean, null, fixed:N or raw, and :desc may follow");
  }

  /** The description in its only spelling; {@link #parse} makes this order of it. */
  public String description() {
    return description;
  }

  /**
   * Compares two serialized keys: negative, zero or positive.
   *
   * @throws MalformedKeyException if a key ends before its fields do or has an impossible number
   */
  public int compare(byte[] a, int aStart, int aLength, byte[] b, int bStart, int bLength) {
    int ai = aStart;
    int bi = bStart;
    int aEnd = aStart + aLength;
    int bEnd = bStart + bLength;
    for (Field field : fields) {
      int order;
      switch (field.type) {
        case TEXT -> {
          int an = textLength(a, ai, aEnd);
          int bn = textLength(b, bi, bEnd);
          ai += vintSize(a, ai, aEnd);
          bi += vintSize(b, bi, bEnd);
          order = compareBytes(a, ai, an, b, bi, bn);
          ai += an;
          bi += bn;
        }
        case BYTES -> {
          int an = bytesLength(a, ai, aEnd);
          int bn = bytesLength(b, bi, bEnd);
          ai += 4;
          bi += 4;
          order = compareBytes(a, ai, an, b, bi, bn);
          ai += an;
          bi += bn;
        }
        case RAW -> {
          order = compareBytes(a, ai, aEnd - ai, b, bi, bEnd - bi);
          ai = aEnd;
          bi = bEnd;
        }
        case FIXED, BOOLEAN -> {
          int an = fixedLength(field, a, ai, aEnd);
          int bn = fixedLength(field, b, bi, bEnd);
          order = compareBytes(a, ai, an, b, bi, bn);
          ai += an;
          bi += bn;
        }
        case INT -> {
          order = Integer.compare(readInt(a, ai, aEnd), readInt(b, bi, bEnd));
          ai += 4;
          bi += 4;
        }
        case LONG -> {
          order = Long.compare(readLong(a, ai, aEnd), readLong(b, bi, bEnd));
          ai += 8;
          bi += 8;
        }
        case VINT, VLONG -> {
          order = Long.compare(readVLong(field, a, ai, aEnd), readVLong(field, b, bi, bEnd));
          ai += vintSize(a, ai, aEnd);
          bi += vintSize(b, bi, bEnd);
        }
        case FLOAT -> {
          order =
              Float.compare(
                  Float.intBitsToFloat(readInt(a, ai, aEnd)),
                  Float.intBitsToFloat(readInt(b, bi, bEnd)));
          ai += 4;
          bi += 4;
        }
        case DOUBLE -> {
          order =
              Double.compare(
                  Double.longBitsToDouble(readLong(a, ai, aEnd)),
                  Double.longBitsToDouble(readLong(b, bi, bEnd)));
          ai += 8;
          bi += 8;
        }
        case NULL -> order = 0;
        default -> throw new AssertionError(field.type);
      }
      if (order != 0) {
        return (order < 0) == field.descending ? 1 : -1;
      }
    }
    return 0;
  }

  /**
   * Eight bytes of the first field that keep the order. If two prefixes differ as unsigned numbers,
   * the keys are in the same order. If they are equal, the keys may be in any order.
   *
   * @throws MalformedKeyException if the key ends before its first field does
   */
  public long prefix(byte[] key, int start, int length) {
    Field first = fields[0];
    int end = start + length;
    long prefix =
        switch (first.type) {
          case TEXT ->
              leadingBytes(key, start + vintSize(key, start, end), textLength(key, start, end));
          case BYTES -> leadingBytes(key, start + 4, bytesLength(key, start, end));
          case RAW -> leadingBytes(key, start, length);
          case FIXED, BOOLEAN -> leadingBytes(key, start, fixedLength(first, key, start, end));
          // Flipping the sign bit maps signed order to unsigned order.
          case INT -> ((long) readInt(key, start, end) << 32) ^ Long.MIN_VALUE;
          case LONG -> readLong(key, start, end) ^ Long.MIN_VALUE;
          case VINT, VLONG -> readVLong(first, key, start, end) ^ Long.MIN_VALUE;
          case FLOAT -> {
            int bits = Float.floatToIntBits(Float.intBitsToFloat(readInt(key, start, end)));
            yield ((long) (bits ^ ((bits >> 31) | Integer.MIN_VALUE))) << 32;
          }
          case DOUBLE -> {
            // The bits of negative numbers are in reverse order, so all of them are flipped.
            // floatToIntBits and doubleToLongBits have one NaN, which is above infinity.
            long bits = Double.doubleToLongBits(Double.longBitsToDouble(readLong(key, start, end)));
            yield bits ^ ((bits >> 63) | Long.MIN_VALUE);
          }
          case NULL -> 0;
        };
    return first.descending ? ~prefix : prefix;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof KeyOrder order && order.description.equals(description);
  }

  @Override
  public int hashCode() {
    return description.hashCode();
  }

  @Override
  public String toString() {
    return description;
  }

  private static int compareBytes(byte[] a, int ai, int an, byte[] b, int bi, int bn) {
    return Arrays.compareUnsigned(a, ai, ai + an, b, bi, bi + bn);
  }

  /** The first eight bytes as a big-endian number; missing ones count as zeros. */
  private static long leadingBytes(byte[] key, int start, int length) {
    long value = 0;
    int count = Math.min(length, 8);
    for (int i = 0; i < count; i++) {
      value |= (key[start + i] & 0xFFL) << (56 - 8 * i);
    }
    return value;
  }

  private static void need(byte[] key, int at, int end, long bytes) {
    if (bytes < 0 || bytes > end - at) {
      throw new MalformedKeyException(
          "a key has " + (end - at) + " bytes left where a field needs " + bytes);
    }
  }

  /** Whether there is only one field, so that it is compared as Hadoop's own comparator does it. */
  private boolean alone() {
    return fields.length == 1;
  }

  /** The bytes after the length of a text; all of them in an only field, as Hadoop does. */
  private int textLength(byte[] key, int at, int end) {
    long said = readVLong(key, at, end);
    int behind = at + vintSize(key, at, end);
    long length = alone() ? end - behind : said;
    need(key, behind, end, length);
    return (int) length;
  }

  /** The bytes after a length of four bytes, likewise. */
  private int bytesLength(byte[] key, int at, int end) {
    int said = readInt(key, at, end);
    int length = alone() ? end - at - 4 : said;
    need(key, at + 4, end, length);
    return length;
  }

  private int fixedLength(Field field, byte[] key, int at, int end) {
    int length = field.type == Type.FIXED ? field.size : 1;
    need(key, at, end, length);
    // Hadoop compares the rest of the key, even if a boolean is longer than a byte.
    return field.type == Type.BOOLEAN && alone() ? end - at : length;
  }

  private static int readInt(byte[] key, int at, int end) {
    need(key, at, end, 4);
    return (key[at] & 0xFF) << 24
        | (key[at + 1] & 0xFF) << 16
        | (key[at + 2] & 0xFF) << 8
        | (key[at + 3] & 0xFF);
  }

  private static long readLong(byte[] key, int at, int end) {
    need(key, at, end, 8);
    return ((long) readInt(key, at, end) << 32) | (readInt(key, at + 4, end) & 0xFFFFFFFFL);
  }

  /** The size in bytes, 1 to 9, of a variable-length number, from its first byte. */
  private static int vintSize(byte[] key, int at, int end) {
    need(key, at, end, 1);
    byte first = key[at];
    return first >= -112 ? 1 : first >= -120 ? -111 - first : -119 - first;
  }

  private static long readVLong(Field field, byte[] key, int at, int end) {
    long value = readVLong(key, at, end);
    if (field.type == Type.VINT && value != (int) value) {
      throw new MalformedKeyException("a key has " + value + " where a vint has at most 4 bytes");
    }
    return value;
  }

  private static long readVLong(byte[] key, int at, int end) {
    int size = vintSize(key, at, end);
    byte first = key[at];
    if (size == 1) {
      return first;
    }
    need(key, at, end, size);
    long value = 0;
    for (int i = 1; i < size; i++) {
      value = value << 8 | (key[at + i] & 0xFF);
    }
    return first < -120 ? ~value : value;
  }
}
