package io.merganser.hadoop.node;

import java.util.Optional;

/**
 * The program of the node that does a job's map, and the combiner's part.
 *
 * @param name its name, or the file of its module
 * @param module what the job brings; empty for a program that the node has
 * @param arguments a JSON object, or empty for none; the module of a job may take any text
 * @param keyType the class of its keys
 * @param valueType the class of its values
 * @param combine how values of one key are combined
 */
record NodeProgram(
    String name,
    Optional<NodeModule> module,
    String arguments,
    Type keyType,
    Type valueType,
    Combine combine) {

  /** A program that the node has. */
  NodeProgram(String name, String arguments, Type keyType, Type valueType, Combine combine) {
    this(name, Optional.empty(), arguments, keyType, valueType, combine);
  }

  /** The classes of keys and values that the node can serialize. */
  enum Type {
    TEXT(1),
    INT(2),
    LONG(3);

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
}
