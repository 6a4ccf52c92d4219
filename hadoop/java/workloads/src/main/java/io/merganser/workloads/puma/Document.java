package io.merganser.workloads.puma;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.StringTokenizer;

/**
 * A line {@code NAME tab WORDS}.
 *
 * @param name everything before the first tab
 * @param words the tokens of everything after it
 */
record Document(String name, List<String> words) {
  /** The document of a line; empty if the line has no tab. */
  static Optional<Document> of(String line) {
    int tab = line.indexOf('\t');
    if (tab < 0) {
      return Optional.empty();
    }
    List<String> words = new ArrayList<>();
    StringTokenizer tokens = new StringTokenizer(line.substring(tab + 1));
    while (tokens.hasMoreTokens()) {
      words.add(tokens.nextToken());
    }
    return Optional.of(new Document(line.substring(0, tab), words));
  }
}
