package org.apache.hadoop.examples;

import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Reducer;

/**
 * A job's own word count, under the name of Hadoop's example: authors begin with a copy of that
 * one.
 */
public final class WordCount {
  private WordCount() {}

  /** Counts something else than words. */
  public static final class TokenizerMapper extends Mapper<Object, Text, Text, IntWritable> {}

  /** Adds something else than counts. */
  public static final class IntSumReducer extends Reducer<Text, IntWritable, Text, IntWritable> {}
}
