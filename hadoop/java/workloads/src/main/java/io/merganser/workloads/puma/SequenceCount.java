package io.merganser.workloads.puma;

import java.io.IOException;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.lib.reduce.IntSumReducer;

/**
 * Counts the sequences of three words in each document: {@code WORD|WORD|WORD|NAME tab COUNT}. This
 * is the input of {@link RankedInvertedIndex}.
 */
public final class SequenceCount extends PumaJob {
  /** Makes the job. */
  public SequenceCount() {
    super("puma-sequence-count");
  }

  @Override
  void configure(Job job) {
    job.setMapperClass(TripleMapper.class);
    job.setCombinerClass(IntSumReducer.class);
    job.setReducerClass(IntSumReducer.class);
    job.setOutputValueClass(IntWritable.class);
  }

  /** Writes each sequence of three words, with the document's name, and 1. */
  public static final class TripleMapper extends Mapper<LongWritable, Text, Text, IntWritable> {
    private static final IntWritable ONE = new IntWritable(1);

    private final Text key = new Text();

    @Override
    protected void map(LongWritable offset, Text line, Context context)
        throws IOException, InterruptedException {
      Optional<Document> document = Document.of(line.toString());
      if (document.isEmpty()) {
        return;
      }
      List<String> words = document.get().words();
      for (int i = 0; i + 2 < words.size(); i++) {
        key.set(
            String.join(
                "|", words.get(i), words.get(i + 1), words.get(i + 2), document.get().name()));
        context.write(key, ONE);
      }
    }
  }
}
