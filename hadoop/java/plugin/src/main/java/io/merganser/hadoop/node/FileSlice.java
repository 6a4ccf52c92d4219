package io.merganser.hadoop.node;

import org.apache.hadoop.fs.Path;

/**
 * A split of a file.
 *
 * @param path the file
 * @param start its first byte
 * @param length its bytes
 */
record FileSlice(Path path, long start, long length) {
  long end() {
    return start + length;
  }

  @Override
  public String toString() {
    return path + ":" + start + "+" + length;
  }
}
