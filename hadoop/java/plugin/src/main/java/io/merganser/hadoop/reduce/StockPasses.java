package io.merganser.hadoop.reduce;

/**
 * Counts the merges from files to a file that Hadoop runs in a reduce task, by the rules of its
 * {@code MergeManagerImpl} and {@code Merger}. The last merge, which the reducer reads, is never
 * counted.
 */
public final class StockPasses {
  private StockPasses() {}

  /** The merges for {@code files} files that arrive one by one, at {@code io.sort.factor}. */
  public static int whileFetchingAndAfter(int files, int factor) {
    if (factor < 2) {
      return 0;
    }
    int passes = 0;
    int held = 0;
    for (int arrived = 0; arrived < files; arrived++) {
      held++;
      if (held >= 2 * factor - 1) {
        held -= factor - 1;
        passes++;
      }
    }
    return passes + after(held, factor);
  }

  /**
   * The merges that reduce {@code files} files, which are all there, to {@code factor} or fewer.
   */
  public static int after(int files, int factor) {
    if (files <= factor || factor < 2) {
      return 0;
    }
    // The first merge takes so few files that all others can take the full factor.
    int excess = (files - 1) % (factor - 1);
    int left = excess == 0 ? files - factor + 1 : files - excess;
    int passes = 1;
    while (left > factor) {
      left -= factor - 1;
      passes++;
    }
    return passes;
  }
}
