package io.merganser.hadoop.segment;

/**
 * The memory that the long keys of one merge share. A key is long if it doesn't fit into the buffer
 * of its segment; its cursor then needs a larger buffer until the key has been merged.
 */
final class LongKeys {
  private long freeBytes;

  private LongKeys(long freeBytes) {
    this.freeBytes = freeBytes;
  }

  /** Long keys that may take {@code bytes} bytes together. */
  static LongKeys within(long bytes) {
    return new LongKeys(bytes);
  }

  /** Long keys of any size. */
  static LongKeys unbounded() {
    return new LongKeys(Long.MAX_VALUE);
  }

  /** Reserves {@code bytes} bytes; returns false if fewer are free. */
  boolean take(long bytes) {
    if (bytes > freeBytes) {
      return false;
    }
    freeBytes -= bytes;
    return true;
  }

  /** Gives back bytes that were taken. */
  void giveBack(long bytes) {
    freeBytes += bytes;
  }

  long freeBytes() {
    return freeBytes;
  }
}
