package org.apache.hadoop.mapred;

import io.merganser.hadoop.node.MapredNodeInputFormat;
import io.merganser.hadoop.node.NodeInputFormat;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.StringTokenizer;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.lib.map.TokenCounterMapper;
import org.apache.hadoop.mapreduce.lib.reduce.IntSumReducer;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;

/** A map task that counts the words of a split as Hadoop runs it, up to its output. */
final class NodeTask {
  private static final IntWritable ONE = new IntWritable(1);

  private final MapSide side;

  NodeTask(MapSide side) {
    this.side = side;
  }

  /** The settings of a job that counts words, whose maps may run on a node. */
  static JobConf settings(java.nio.file.Path socket, int partitions) {
    JobConf job = MapSide.settings(Text.class, IntWritable.class, partitions);
    job.setUseNewMapper(true);
    job.setClass(
        MRJobConfig.MAP_CLASS_ATTR,
        TokenCounterMapper.class,
        org.apache.hadoop.mapreduce.Mapper.class);
    job.setClass(
        MRJobConfig.COMBINE_CLASS_ATTR,
        IntSumReducer.class,
        org.apache.hadoop.mapreduce.Reducer.class);
    job.setStrings(
        MRJobConfig.MAP_OUTPUT_COLLECTOR_CLASS_ATTR,
        NodeMapOutput.class.getName(),
        MapTask.MapOutputBuffer.class.getName());
    job.set("merganser.node.socket", socket.toString());
    return job;
  }

  /** The collector of the task. */
  NodeMapOutput<Text, IntWritable> collector() {
    NodeMapOutput<Text, IntWritable> output =
        new NodeMapOutput<>() {
          @Override
          ByteBuffer serviceMetaData() {
            return side.serviceMetaData();
          }
        };
    output.init(side.context());
    return output;
  }

  /** Maps a split by a job of the new API, and returns the lines that the mapper got. */
  long run(org.apache.hadoop.mapreduce.lib.input.FileSplit split) throws Exception {
    return run(split, collector());
  }

  long run(
      org.apache.hadoop.mapreduce.lib.input.FileSplit split,
      MapOutputCollector<Text, IntWritable> output)
      throws Exception {
    long lines = read(split, output);
    output.flush();
    output.close();
    return lines;
  }

  /** Maps a split without an end, and returns the lines that the mapper got. */
  long read(
      org.apache.hadoop.mapreduce.lib.input.FileSplit split,
      MapOutputCollector<Text, IntWritable> output)
      throws Exception {
    var context = new TaskAttemptContextImpl(side.job(), side.task().getTaskID(), side.reporter());
    long lines = 0;
    try (var reader =
        new NodeInputFormat<LongWritable, Text>().createRecordReader(split, context)) {
      reader.initialize(split, context);
      while (reader.nextKeyValue()) {
        lines++;
        map(reader.getCurrentValue(), output);
      }
    }
    return lines;
  }

  /** Maps a split by a job of the old API, and returns the lines that the mapper got. */
  long runOld(FileSplit split) throws Exception {
    NodeMapOutput<Text, IntWritable> output = collector();
    RecordReader<LongWritable, Text> reader =
        new MapredNodeInputFormat().getRecordReader(split, side.job(), side.reporter());
    LongWritable key = reader.createKey();
    Text value = reader.createValue();
    long lines = 0;
    while (reader.next(key, value)) {
      lines++;
      map(value, output);
    }
    reader.close();
    output.flush();
    output.close();
    return lines;
  }

  private void map(Text line, MapOutputCollector<Text, IntWritable> output)
      throws IOException, InterruptedException {
    int partitions = Math.max(1, side.job().getNumReduceTasks());
    StringTokenizer tokens = new StringTokenizer(line.toString());
    while (tokens.hasMoreTokens()) {
      Text word = new Text(tokens.nextToken());
      output.collect(word, ONE, (word.hashCode() & Integer.MAX_VALUE) % partitions);
    }
  }
}
