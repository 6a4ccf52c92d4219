package io.merganser.hadoop.cluster;

import java.io.IOException;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Mapper;

/**
 * For each line, its bytes before the first space, and how many bytes the line has. {@code
 * first-words.wat} does the same in WebAssembly.
 */
final class FirstWords {
  /** The value of {@code merganser.node.ssdlet}: a file of the class path. */
  static final String MODULE = "wasm:first-words.wasm";

  private FirstWords() {}

  private static void key(Text line, Text key) {
    int space = 0;
    while (space < line.getLength() && line.getBytes()[space] != ' ') {
      space++;
    }
    key.set(line.getBytes(), 0, space);
  }

  /** The mapper of a job with short numbers. */
  static final class Ints extends Mapper<LongWritable, Text, Text, IntWritable> {
    private final Text key = new Text();

    @Override
    protected void map(LongWritable offset, Text line, Context context)
        throws IOException, InterruptedException {
      key(line, key);
      context.write(key, new IntWritable(line.getLength()));
    }
  }

  /** The mapper of a job with long numbers. */
  static final class Longs extends Mapper<LongWritable, Text, Text, LongWritable> {
    private final Text key = new Text();

    @Override
    protected void map(LongWritable offset, Text line, Context context)
        throws IOException, InterruptedException {
      key(line, key);
      context.write(key, new LongWritable(line.getLength()));
    }
  }
}
