package io.merganser.hadoop.cluster;

import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.defer.DeferRules;
import io.merganser.hadoop.node.MapredNodeInputFormat;
import io.merganser.hadoop.node.NodeInputFormat;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.Counter;
import org.apache.hadoop.mapreduce.Counters;
import org.apache.hadoop.mapreduce.InputFormat;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.FileSplit;
import org.apache.hadoop.mapreduce.lib.input.TextInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;

/**
 * A job over files of HDFS, run in this JVM: with a node, with a node for some splits, or without.
 */
final class NodeJob {
  private static final AtomicInteger OUTPUTS = new AtomicInteger();

  /** Where the maps of a job run. */
  enum Maps {
    /** All on the host, as in stock Hadoop. */
    STOCK,
    /** All on the node. */
    NODE,
    /** One on the node, the next on the host, and so on. */
    ALTERNATING
  }

  private final Path folder;
  private final Class<?> mapper;
  private final Class<?> combiner;
  private final Class<? extends Writable> value;
  private final Map<String, String> settings = new TreeMap<>();

  /**
   * @param folder for everything that jobs write
   * @param mapper of Hadoop's new API or of its old one
   * @param combiner null for none; of either API
   * @param value the class of the mapper's values: Text, IntWritable or LongWritable
   */
  NodeJob(Path folder, Class<?> mapper, Class<?> combiner, Class<? extends Writable> value) {
    this.folder = folder;
    this.mapper = mapper;
    this.combiner = combiner;
    this.value = value;
  }

  NodeJob with(String key, Object value) {
    settings.put(key, value.toString());
    return this;
  }

  /** What a job wrote and counted. */
  record Done(Map<String, String> digests, Counters counters) {
    long counter(String name) {
      return counters.findCounter(DeferRules.COUNTERS, name).getValue();
    }

    long counter(TaskCounter name) {
      return counters.findCounter(name).getValue();
    }

    /** The reasons for which maps ran on the host. */
    Map<String, Long> onHost() {
      return NodeJob.onHost(counters);
    }
  }

  /** The reasons for which maps of a job with these counters ran on the host. */
  static Map<String, Long> onHost(Counters counters) {
    Map<String, Long> reasons = new TreeMap<>();
    for (Counter counter : counters.getGroup(DeferRules.COUNTERS)) {
      if (counter.getName().startsWith("MAPS_ON_HOST_")) {
        reasons.put(counter.getName().substring("MAPS_ON_HOST_".length()), counter.getValue());
      }
    }
    return reasons;
  }

  /** Runs the job. */
  Done run(Maps maps, Path socket, List<org.apache.hadoop.fs.Path> inputs) throws Exception {
    Path output = folder.resolve("out-" + OUTPUTS.incrementAndGet());
    Job job = prepare(Runner.localRunner(folder.resolve("runner")), maps, socket, inputs, output);
    if (!job.waitForCompletion(false)) {
      throw new IOException("the job failed: " + job.getStatus().getFailureInfo());
    }
    Map<String, String> digests = Output.digests(output);
    ClusterUnderTest.delete(output);
    return new Done(digests, job.getCounters());
  }

  /** The job with those settings of a cluster. */
  Job prepare(
      JobConf conf, Maps maps, Path socket, List<org.apache.hadoop.fs.Path> inputs, Path output)
      throws IOException {
    Active.use(conf);
    settings.forEach(conf::set);
    Job job = Job.getInstance(conf, mapper.getSimpleName());
    setMapper(job);
    job.setReducerClass(Values.class);
    job.setMapOutputKeyClass(Text.class);
    job.setMapOutputValueClass(value);
    job.setOutputKeyClass(Text.class);
    job.setOutputValueClass(Text.class);
    job.setNumReduceTasks(2);
    for (org.apache.hadoop.fs.Path input : inputs) {
      FileInputFormat.addInputPath(job, input);
    }
    FileOutputFormat.setOutputPath(job, Runner.hadoop(output));
    if (maps != Maps.STOCK) {
      onNode(job.getConfiguration(), socket);
      setInput(job, maps);
    }
    return job;
  }

  /** Whether the mapper is one of Hadoop's old API. */
  private boolean isOld() {
    return org.apache.hadoop.mapred.Mapper.class.isAssignableFrom(mapper);
  }

  private void setMapper(Job job) {
    JobConf conf = (JobConf) job.getConfiguration();
    if (isOld()) {
      conf.setMapperClass(mapper.asSubclass(org.apache.hadoop.mapred.Mapper.class));
    } else {
      job.setMapperClass(mapper.asSubclass(Mapper.class));
    }
    if (combiner == null) {
      return;
    }
    if (org.apache.hadoop.mapred.Reducer.class.isAssignableFrom(combiner)) {
      conf.setCombinerClass(combiner.asSubclass(org.apache.hadoop.mapred.Reducer.class));
    } else {
      job.setCombinerClass(combiner.asSubclass(Reducer.class));
    }
  }

  private void setInput(Job job, Maps maps) {
    if (!isOld()) {
      job.setInputFormatClass(
          maps == Maps.NODE ? NodeInputFormat.class : AlternatingInputFormat.class);
    } else if (maps == Maps.NODE) {
      ((JobConf) job.getConfiguration()).setInputFormat(MapredNodeInputFormat.class);
    } else {
      throw new IllegalArgumentException("maps of the old API are all on the node, or none");
    }
  }

  /** Lets maps run on a node, as docs/hadoop/hadoop.md says. */
  private static void onNode(org.apache.hadoop.conf.Configuration conf, Path socket) {
    conf.set(Keys.NODE_SOCKET, socket.toString());
    conf.set(
        MRJobConfig.MAP_OUTPUT_COLLECTOR_CLASS_ATTR,
        "org.apache.hadoop.mapred.NodeMapOutput," + Active.COLLECTOR);
  }

  /** Writes the sum of integers, or all texts in order: neither depends on spills. */
  static final class Values extends Reducer<Text, Object, Text, Text> {
    @Override
    protected void reduce(Text key, Iterable<Object> values, Context context)
        throws IOException, InterruptedException {
      long sum = 0;
      Map<String, Integer> texts = new TreeMap<>();
      for (Object value : values) {
        if (value instanceof IntWritable number) {
          sum += number.get();
        } else if (value instanceof LongWritable number) {
          sum += number.get();
        } else {
          texts.merge(value.toString(), 1, Integer::sum);
        }
      }
      context.write(key, new Text(texts.isEmpty() ? Long.toString(sum) : texts.toString()));
    }
  }

  /** Lets the maps of every second split run on the node. */
  static final class AlternatingInputFormat extends InputFormat<LongWritable, Text> {
    private final NodeInputFormat<LongWritable, Text> onNode = new NodeInputFormat<>();

    @Override
    public List<InputSplit> getSplits(JobContext context) throws IOException, InterruptedException {
      return onNode.getSplits(context);
    }

    @Override
    public RecordReader<LongWritable, Text> createRecordReader(
        InputSplit split, TaskAttemptContext context) throws IOException, InterruptedException {
      FileSplit file = (FileSplit) split;
      long number = file.getStart() / Math.max(1, file.getLength());
      return number % 2 == 0
          ? onNode.createRecordReader(split, context)
          : new TextInputFormat().createRecordReader(split, context);
    }
  }
}
