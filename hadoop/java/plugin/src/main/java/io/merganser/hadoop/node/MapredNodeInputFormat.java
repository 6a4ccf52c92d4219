package io.merganser.hadoop.node;

import io.merganser.hadoop.config.Keys;
import java.io.IOException;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapred.FileSplit;
import org.apache.hadoop.mapred.InputFormat;
import org.apache.hadoop.mapred.InputSplit;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.RecordReader;
import org.apache.hadoop.mapred.Reporter;
import org.apache.hadoop.mapred.TextInputFormat;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.util.ReflectionUtils;

/**
 * {@link NodeInputFormat} for jobs of Hadoop's old API, {@code org.apache.hadoop.mapred}. Maps of
 * jobs with another input format than that for lines of text run on the host.
 */
public final class MapredNodeInputFormat implements InputFormat<LongWritable, Text> {
  @Override
  public InputSplit[] getSplits(JobConf job, int splits) throws IOException {
    return own(job).getSplits(job, splits);
  }

  @Override
  public RecordReader<LongWritable, Text> getRecordReader(
      InputSplit split, JobConf job, Reporter reporter) throws IOException {
    InputFormat<LongWritable, Text> own = own(job);
    NodeMap map =
        new NodeMap(
            TaskAttemptID.forName(job.get(MRJobConfig.TASK_ATTEMPT_ID)),
            TaskCounters.of(reporter),
            job.getNumReduceTasks(),
            own.getClass());
    if (own.getClass() != TextInputFormat.class || !(split instanceof FileSplit file)) {
      map.refuse(HostReason.UNKNOWN_INPUT, own.getClass().getName() + " of " + split.getClass());
      return own.getRecordReader(split, job, reporter);
    }
    return new MapredNodeRecordReader(map, file, () -> own.getRecordReader(split, job, reporter));
  }

  @SuppressWarnings("unchecked")
  private static InputFormat<LongWritable, Text> own(JobConf job) {
    Class<?> own = job.getClass(Keys.NODE_INPUT_FORMAT, TextInputFormat.class);
    if (own == MapredNodeInputFormat.class || !InputFormat.class.isAssignableFrom(own)) {
      throw new IllegalArgumentException(
          Keys.NODE_INPUT_FORMAT + " is " + own.getName() + ", which is not a job's input format");
    }
    return (InputFormat<LongWritable, Text>) ReflectionUtils.newInstance(own, job);
  }
}
