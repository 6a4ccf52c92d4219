package io.merganser.hadoop.node;

import io.merganser.hadoop.config.Keys;
import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.InputFormat;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.input.TextInputFormat;
import org.apache.hadoop.util.ReflectionUtils;

/**
 * The input format of jobs whose maps may run on the node where their blocks are. The splits are
 * those of the job's own input format, {@link Keys#NODE_INPUT_FORMAT}.
 *
 * <p>The mapper and everything else of the job stay as they are. A reader asks the node at its
 * first record. If the node has mapped the split, the reader has no records, and the mapper is
 * never called; else the job's own reader is opened, and the map is that of stock Hadoop. Hadoop
 * initializes a reader before the mapper runs, which reads from HDFS; so this reader initializes
 * the job's own one only when it needs it.
 *
 * @param <K> the class of the records' keys
 * @param <V> the class of the records' values
 */
public final class NodeInputFormat<K, V> extends InputFormat<K, V> {
  @Override
  public List<InputSplit> getSplits(JobContext context) throws IOException, InterruptedException {
    return own(context.getConfiguration()).getSplits(context);
  }

  @Override
  public RecordReader<K, V> createRecordReader(InputSplit split, TaskAttemptContext context)
      throws IOException, InterruptedException {
    InputFormat<K, V> own = own(context.getConfiguration());
    return new NodeRecordReader<>(own.createRecordReader(split, context), own.getClass());
  }

  @SuppressWarnings("unchecked")
  private InputFormat<K, V> own(Configuration conf) {
    Class<?> own = conf.getClass(Keys.NODE_INPUT_FORMAT, TextInputFormat.class);
    if (own == NodeInputFormat.class || !InputFormat.class.isAssignableFrom(own)) {
      throw new IllegalArgumentException(
          Keys.NODE_INPUT_FORMAT + " is " + own.getName() + ", which is not a job's input format");
    }
    return (InputFormat<K, V>) ReflectionUtils.newInstance(own, conf);
  }
}
