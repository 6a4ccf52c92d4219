package io.merganser.workloads.puma;

import java.io.IOException;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.lib.reduce.IntSumReducer;

/** Counts reviews by their rating: {@code RATING tab COUNT}. */
public final class HistogramRatings extends PumaJob {
  /** Makes the job. */
  public HistogramRatings() {
    super("puma-histogram-ratings");
  }

  @Override
  void configure(Job job) {
    job.setMapperClass(RatingMapper.class);
    job.setCombinerClass(IntSumReducer.class);
    job.setReducerClass(IntSumReducer.class);
    job.setOutputValueClass(IntWritable.class);
  }

  /** Writes each rating and 1. */
  public static final class RatingMapper extends Mapper<LongWritable, Text, Text, IntWritable> {
    private static final IntWritable ONE = new IntWritable(1);

    private final Text key = new Text();

    @Override
    protected void map(LongWritable offset, Text line, Context context)
        throws IOException, InterruptedException {
      for (int rating : Reviews.ratings(line.toString())) {
        key.set(Integer.toString(rating));
        context.write(key, ONE);
      }
    }
  }
}
