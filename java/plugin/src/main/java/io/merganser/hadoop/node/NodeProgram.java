package io.merganser.hadoop.node;

import java.util.HexFormat;
import java.util.Locale;

/**
 * The program of the node that does a job's map, and the combiner's part.
 *
 * @param kind whether it is built in
 * @param name its name, or the SHA-256 of an uploaded one in 64 hexadecimal digits
 * @param arguments a JSON object, or empty for none
 * @param keyType the class of its keys
 * @param valueType the class of its values
 * @param combine how values of one key are combined
 */
record NodeProgram(
    Kind kind, String name, String arguments, Type keyType, Type valueType, Combine combine) {
  private static final String SHA256_PREFIX = "sha256:";
  private static final int SHA256_DIGITS = 64;

  /** The kinds of programs. */
  enum Kind {
    BUILT_IN(1),
    WASM(2);

    final int code;

    Kind(int code) {
      this.code = code;
    }
  }

  /** The classes of keys and values that the node can serialize. */
  enum Type {
    TEXT(1),
    INT(2),
    LONG(3),
    NULL(4);

    final int code;

    Type(int code) {
      this.code = code;
    }
  }

  /** The combiners that the node has. */
  enum Combine {
    NONE(0),
    /** Adds the values of a key up; sums wrap as in Java. */
    SUM(1),
    /** Keeps one of equal values of a key. */
    DISTINCT(2);

    final int code;

    Combine(int code) {
      this.code = code;
    }
  }

  /**
   * The program of a name in the settings of a job: that of a built-in program, or {@code
   * sha256:HEX}.
   *
   * @throws IllegalArgumentException if the digits aren't those of a SHA-256
   */
  static NodeProgram named(
      String name, String arguments, Type keyType, Type valueType, Combine combine) {
    if (!name.startsWith(SHA256_PREFIX)) {
      return new NodeProgram(Kind.BUILT_IN, name, arguments, keyType, valueType, combine);
    }
    String digits = name.substring(SHA256_PREFIX.length());
    if (digits.length() != SHA256_DIGITS || !digits.chars().allMatch(HexFormat::isHexDigit)) {
      throw new IllegalArgumentException(name + " has not 64 hexadecimal digits");
    }
    return new NodeProgram(
        Kind.WASM, digits.toLowerCase(Locale.ROOT), arguments, keyType, valueType, combine);
  }
}
