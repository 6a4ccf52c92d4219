package io.merganser.hadoop.reduce;

/**
 * How many merges from files to a file Hadoop runs in a reduce task, by the rules of its {@code
 * MergeManagerImpl} and {@code Merger}; none of them counts the last merge, which the reducer
 * reads.
 */
public final class StockPasses {
  private StockPasses() {}

  /** Merges for {@code files} files that arrive one by one, at {@code io.sort.factor}. */
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

  /** Merges that leave at most {@code factor} of {@code files} files that are all there. */
  public static int after(int files, int factor) {
    if (files <= factor || factor < 2) {
      return 0;
    }
    // The first one takes just as many as let all others take the full factor.
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
