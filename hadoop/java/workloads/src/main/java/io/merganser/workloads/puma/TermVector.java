package io.merganser.workloads.puma;

import java.io.IOException;
import java.util.Comparator;
import java.util.Map;
import java.util.Optional;
import java.util.StringTokenizer;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Reducer;

/** For each document its words, the most frequent first: {@code NAME tab WORD:COUNT WORD:COUNT}. */
public final class TermVector extends PumaJob {
  /** Makes the job. */
  public TermVector() {
    super("puma-term-vector");
  }

  @Override
  void configure(Job job) {
    job.setMapperClass(DocumentMapper.class);
    job.setReducerClass(VectorReducer.class);
    job.setOutputValueClass(Text.class);
  }

  /** Writes a document's name and the counts of the words of one line, by word. */
  public static final class DocumentMapper extends Mapper<LongWritable, Text, Text, Text> {
    private final Text name = new Text();
    private final Text vector = new Text();

    @Override
    protected void map(LongWritable offset, Text line, Context context)
        throws IOException, InterruptedException {
      Optional<Document> document = Document.of(line.toString());
      if (document.isEmpty() || document.get().words().isEmpty()) {
        return;
      }
      // Texts are in the order of their bytes, which strings are not.
      Map<Text, Integer> counts = new TreeMap<>();
      for (String word : document.get().words()) {
        counts.merge(new Text(word), 1, Integer::sum);
      }
      name.set(document.get().name());
      vector.set(joined(counts));
      context.write(name, vector);
    }
  }

  /** Adds the counts of all lines of a document up. */
  static final class VectorReducer extends Reducer<Text, Text, Text, Text> {
    @Override
    protected void reduce(Text name, Iterable<Text> vectors, Context context)
        throws IOException, InterruptedException {
      Map<Text, Integer> counts = new TreeMap<>();
      for (Text vector : vectors) {
        StringTokenizer terms = new StringTokenizer(vector.toString());
        while (terms.hasMoreTokens()) {
          String term = terms.nextToken();
          int colon = term.lastIndexOf(':');
          int count = Integer.parseInt(term.substring(colon + 1));
          counts.merge(new Text(term.substring(0, colon)), count, Integer::sum);
        }
      }
      String sorted =
          counts.entrySet().stream()
              .sorted(Map.Entry.comparingByValue(Comparator.<Integer>reverseOrder()))
              .map(e -> e.getKey() + ":" + e.getValue())
              .collect(Collectors.joining(" "));
      context.write(name, new Text(sorted));
    }
  }

  private static String joined(Map<Text, Integer> counts) {
    return counts.entrySet().stream()
        .map(e -> e.getKey() + ":" + e.getValue())
        .collect(Collectors.joining(" "));
  }
}
