package io.merganser.workloads;

import java.io.IOException;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.lib.input.MultipleInputs;
import org.apache.hadoop.mapreduce.lib.input.TextInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.lib.output.TextOutputFormat;
import org.apache.hadoop.util.Tool;

/**
 * Joins visits with users on the id of the user, in the reducers. Both tables are shuffled. A
 * secondary sort puts the user first, so that a reducer holds one line of one table.
 */
public final class RepartitionJoin extends Configured implements Tool {
  private static final String USER = "0";
  private static final String VISIT = "1";

  @Override
  public int run(String[] args) throws Exception {
    if (args.length != 3) {
      System.err.println("join USERS VISITS OUTPUT");
      return 2;
    }
    Job job = Job.getInstance(getConf(), "repartition join");
    job.setJarByClass(RepartitionJoin.class);
    TextPair.use(job);
    MultipleInputs.addInputPath(job, new Path(args[0]), TextInputFormat.class, UserMapper.class);
    MultipleInputs.addInputPath(job, new Path(args[1]), TextInputFormat.class, VisitMapper.class);
    job.setMapOutputValueClass(Text.class);
    job.setReducerClass(Joiner.class);
    job.setOutputKeyClass(Text.class);
    job.setOutputValueClass(Text.class);
    job.setOutputFormatClass(TextOutputFormat.class);
    FileOutputFormat.setOutputPath(job, new Path(args[2]));
    return job.waitForCompletion(true) ? 0 : 1;
  }

  /** Splits a line at its first tab, which every line has. */
  abstract static class LineMapper extends Mapper<LongWritable, Text, TextPair, Text> {
    private final TextPair key = new TextPair();
    private final Text rest = new Text();

    /** The second part of a line's key. */
    abstract String tag();

    @Override
    protected void map(LongWritable offset, Text line, Context context)
        throws IOException, InterruptedException {
      int tab = line.find("\t");
      if (tab < 0) {
        throw new IOException("the line at byte " + offset + " has no tab");
      }
      rest.set(line.getBytes(), 0, tab);
      key.set(rest, tag());
      rest.set(line.getBytes(), tab + 1, line.getLength() - tab - 1);
      context.write(key, rest);
    }
  }

  static final class UserMapper extends LineMapper {
    @Override
    String tag() {
      return USER;
    }
  }

  static final class VisitMapper extends LineMapper {
    @Override
    String tag() {
      return VISIT;
    }
  }

  static final class Joiner extends Reducer<TextPair, Text, Text, Text> {
    private static final byte[] TAB = {'\t'};

    private final Text user = new Text();
    private final Text joined = new Text();

    @Override
    protected void reduce(TextPair key, Iterable<Text> lines, Context context)
        throws IOException, InterruptedException {
      boolean known = false;
      for (Text line : lines) {
        // Hadoop changes the key together with the value.
        if (key.second.toString().equals(USER)) {
          user.set(line);
          known = true;
        } else if (known) {
          joined.set(user);
          joined.append(TAB, 0, TAB.length);
          joined.append(line.getBytes(), 0, line.getLength());
          context.write(key.first, joined);
        }
      }
    }
  }
}
