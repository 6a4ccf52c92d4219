package io.merganser.workloads.puma;

import java.io.IOException;
import java.util.List;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.lib.reduce.IntSumReducer;

/**
 * Counts movies by the average of their ratings, in bins of half a point that are named by their
 * upper end: {@code BIN tab COUNT}.
 */
public final class HistogramMovies extends PumaJob {
  /** Makes the job. */
  public HistogramMovies() {
    super("puma-histogram-movies");
  }

  @Override
  void configure(Job job) {
    job.setMapperClass(BinMapper.class);
    job.setCombinerClass(IntSumReducer.class);
    job.setReducerClass(IntSumReducer.class);
    job.setOutputValueClass(IntWritable.class);
  }

  /** Writes the bin of a movie and 1. */
  public static final class BinMapper extends Mapper<LongWritable, Text, Text, IntWritable> {
    private static final IntWritable ONE = new IntWritable(1);

    private final Text bin = new Text();

    @Override
    protected void map(LongWritable offset, Text line, Context context)
        throws IOException, InterruptedException {
      List<Integer> ratings = Reviews.ratings(line.toString());
      if (ratings.isEmpty()) {
        return;
      }
      long sum = ratings.stream().mapToLong(Integer::longValue).sum();
      long halves = 2 * sum / ratings.size() + 1;
      bin.set(halves / 2 + (halves % 2 == 0 ? ".0" : ".5"));
      context.write(bin, ONE);
    }
  }
}
