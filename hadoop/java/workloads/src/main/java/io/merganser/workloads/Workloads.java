package io.merganser.workloads;

import io.merganser.workloads.puma.DocumentIndex;
import io.merganser.workloads.puma.HistogramMovies;
import io.merganser.workloads.puma.HistogramRatings;
import io.merganser.workloads.puma.RankedInvertedIndex;
import io.merganser.workloads.puma.SequenceCount;
import io.merganser.workloads.puma.TermVector;
import io.merganser.workloads.puma.WordCount;
import java.util.Arrays;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/** Runs one of the jobs by name. */
public final class Workloads {
  private static final Map<String, Supplier<Tool>> TOOLS =
      Map.ofEntries(
          Map.entry("generate", Generate::new),
          Map.entry("record-sort", RecordSort::new),
          Map.entry("join", RepartitionJoin::new),
          Map.entry("inverted-index", InvertedIndex::new),
          Map.entry("checksum", Checksum::new),
          Map.entry("puma-wordcount", WordCount::new),
          Map.entry("puma-term-vector", TermVector::new),
          Map.entry("puma-inverted-index", DocumentIndex::new),
          Map.entry("puma-histogram-movies", HistogramMovies::new),
          Map.entry("puma-histogram-ratings", HistogramRatings::new),
          Map.entry("puma-sequence-count", SequenceCount::new),
          Map.entry("puma-ranked-inverted-index", RankedInvertedIndex::new));

  private Workloads() {}

  /**
   * Runs the job that the first argument names, and ends with its exit code.
   *
   * @param args the name, Hadoop's generic options, and the arguments of the job
   */
  public static void main(String[] args) throws Exception {
    Supplier<Tool> tool = args.length == 0 ? null : TOOLS.get(args[0]);
    if (tool == null) {
      System.err.println(
          "Name one of " + String.join(", ", TOOLS.keySet().stream().sorted().toList()));
      System.exit(2);
      return;
    }
    String[] rest = Arrays.copyOfRange(args, 1, args.length);
    System.exit(ToolRunner.run(new Configuration(), tool.get(), rest));
  }
}
