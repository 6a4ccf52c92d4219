package io.merganser.workloads;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.lib.output.TextOutputFormat;
import org.apache.hadoop.util.Tool;

/**
 * For each word of the lines {@code TITLE tab WORDS}, lists the titles that have it, in order, and
 * its places there: {@code WORD tab TITLE:PLACE,PLACE TITLE:PLACE}.
 */
public final class InvertedIndex extends Configured implements Tool {
  @Override
  public int run(String[] args) throws Exception {
    if (args.length != 2) {
      System.err.println("inverted-index INPUT OUTPUT");
      return 2;
    }
    Job job = Job.getInstance(getConf(), "inverted index");
    job.setJarByClass(InvertedIndex.class);
    TextPair.use(job);
    job.setMapperClass(Splitter.class);
    job.setMapOutputValueClass(Text.class);
    job.setReducerClass(Lister.class);
    job.setOutputKeyClass(Text.class);
    job.setOutputValueClass(Text.class);
    job.setOutputFormatClass(TextOutputFormat.class);
    FileInputFormat.addInputPath(job, new Path(args[0]));
    FileOutputFormat.setOutputPath(job, new Path(args[1]));
    return job.waitForCompletion(true) ? 0 : 1;
  }

  static final class Splitter extends Mapper<LongWritable, Text, TextPair, Text> {
    private final TextPair key = new TextPair();
    private final Text word = new Text();
    private final Text places = new Text();

    @Override
    protected void map(LongWritable offset, Text line, Context context)
        throws IOException, InterruptedException {
      String[] parts = line.toString().split("\t", 2);
      if (parts.length < 2) {
        throw new IOException("the line at byte " + offset + " has no tab");
      }
      Map<String, StringBuilder> found = new HashMap<>();
      String[] words = parts[1].split(" ");
      for (int place = 0; place < words.length; place++) {
        StringBuilder all = found.computeIfAbsent(words[place], unused -> new StringBuilder());
        all.append(all.isEmpty() ? "" : ",").append(place);
      }
      for (Map.Entry<String, StringBuilder> one : found.entrySet()) {
        word.set(one.getKey());
        key.set(word, parts[0]);
        places.set(one.getValue().toString());
        context.write(key, places);
      }
    }
  }

  static final class Lister extends Reducer<TextPair, Text, Text, Text> {
    private static final byte[] SPACE = " ".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] COLON = ":".getBytes(StandardCharsets.US_ASCII);

    private final Text listed = new Text();

    @Override
    protected void reduce(TextPair key, Iterable<Text> all, Context context)
        throws IOException, InterruptedException {
      listed.clear();
      for (Text places : all) {
        if (listed.getLength() > 0) {
          listed.append(SPACE, 0, SPACE.length);
        }
        // Hadoop changes the key together with the value.
        listed.append(key.second.getBytes(), 0, key.second.getLength());
        listed.append(COLON, 0, COLON.length);
        listed.append(places.getBytes(), 0, places.getLength());
      }
      context.write(key.first, listed);
    }
  }
}
