package io.merganser.workloads.puma;

import java.io.IOException;
import java.util.HashSet;
import java.util.Set;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Reducer;

/** Keeps one of equal values of a key. */
public final class Distinct extends Reducer<Text, Text, Text, Text> {
  @Override
  protected void reduce(Text key, Iterable<Text> values, Context context)
      throws IOException, InterruptedException {
    Set<Text> seen = new HashSet<>();
    for (Text value : values) {
      if (!seen.contains(value)) {
        seen.add(new Text(value));
        context.write(key, value);
      }
    }
  }
}
