package io.merganser.workloads.puma;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Reducer;

/**
 * For each sequence of words the documents that have it, the one with the most first: {@code
 * SEQUENCE tab COUNT|NAME tab COUNT|NAME}. The input is the output of {@link SequenceCount}.
 */
public final class RankedInvertedIndex extends PumaJob {
  /** Makes the job. */
  public RankedInvertedIndex() {
    super("puma-ranked-inverted-index");
  }

  @Override
  void configure(Job job) {
    job.setMapperClass(DocumentMapper.class);
    job.setReducerClass(RankReducer.class);
    job.setOutputValueClass(Text.class);
  }

  /** Moves the document's name from the key to the value. */
  public static final class DocumentMapper extends Mapper<LongWritable, Text, Text, Text> {
    private final Text sequence = new Text();
    private final Text place = new Text();

    @Override
    protected void map(LongWritable offset, Text line, Context context)
        throws IOException, InterruptedException {
      String text = line.toString();
      int tab = text.indexOf('\t');
      int bar = tab < 0 ? -1 : text.lastIndexOf('|', tab);
      if (bar < 0) {
        return;
      }
      sequence.set(text.substring(0, bar));
      place.set(text.substring(tab + 1) + "|" + text.substring(bar + 1, tab));
      context.write(sequence, place);
    }
  }

  /** Sorts the documents of a sequence by their counts. */
  static final class RankReducer extends Reducer<Text, Text, Text, Text> {
    /**
     * A document and its count.
     *
     * @param count 0 if the input has no number there
     * @param text the count and the name, as in the input
     */
    private record Place(long count, String text) {
      static Place of(String text) {
        try {
          return new Place(Long.parseLong(text.substring(0, text.indexOf('|'))), text);
        } catch (NumberFormatException e) {
          return new Place(0, text);
        }
      }
    }

    @Override
    protected void reduce(Text sequence, Iterable<Text> places, Context context)
        throws IOException, InterruptedException {
      List<Place> ranked = new ArrayList<>();
      for (Text place : places) {
        ranked.add(Place.of(place.toString()));
      }
      ranked.sort(Comparator.comparingLong(Place::count).reversed().thenComparing(Place::text));
      context.write(
          sequence, new Text(ranked.stream().map(Place::text).collect(Collectors.joining("\t"))));
    }
  }
}
