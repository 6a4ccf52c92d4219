package io.merganser.workloads.puma;

import java.util.ArrayList;
import java.util.List;

/** The ratings of a line {@code MOVIE:USER_RATING,USER_RATING,...}. */
final class Reviews {
  private static final char LEAST = '1';
  private static final char MOST = '5';

  private Reviews() {}

  /**
   * The ratings, 1 to 5, in the order of the line. Reviews that aren't well formed are left out.
   */
  static List<Integer> ratings(String line) {
    List<Integer> ratings = new ArrayList<>();
    int colon = line.indexOf(':');
    if (colon < 0) {
      return ratings;
    }
    for (String review : line.substring(colon + 1).split(",", -1)) {
      String[] parts = review.split("_", -1);
      boolean formed =
          parts.length > 1
              && parts[1].length() == 1
              && parts[1].charAt(0) >= LEAST
              && parts[1].charAt(0) <= MOST;
      if (formed) {
        ratings.add(parts[1].charAt(0) - '0');
      }
    }
    return ratings;
  }
}
