package io.merganser.workloads;

import java.io.IOException;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.WritableComparator;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Partitioner;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.FixedLengthInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.util.Tool;

/**
 * TeraSort for records of any fixed length: all outputs one after the other are the sorted input.
 * Keys are the first 10 bytes. They count as uniformly distributed, so partitions need no samples
 * and are always the same.
 */
public final class RecordSort extends Configured implements Tool {
  @Override
  public int run(String[] args) throws Exception {
    if (args.length != 2) {
      System.err.println("record-sort INPUT OUTPUT");
      return 2;
    }
    FixedLengthInputFormat.setRecordLength(
        getConf(), getConf().getInt(Generate.RECORD_BYTES, 4096));
    Job job = Job.getInstance(getConf(), "record sort");
    job.setJarByClass(RecordSort.class);
    job.setInputFormatClass(FixedLengthInputFormat.class);
    job.setMapperClass(KeyMapper.class);
    job.setPartitionerClass(Prefix.class);
    job.setOutputKeyClass(BytesWritable.class);
    job.setOutputValueClass(BytesWritable.class);
    job.setOutputFormatClass(FixedOutputFormat.class);
    FileInputFormat.addInputPath(job, new Path(args[0]));
    FileOutputFormat.setOutputPath(job, new Path(args[1]));
    return job.waitForCompletion(true) ? 0 : 1;
  }

  static final class KeyMapper
      extends Mapper<LongWritable, BytesWritable, BytesWritable, BytesWritable> {
    private final BytesWritable key = new BytesWritable();
    private final BytesWritable value = new BytesWritable();

    @Override
    protected void map(LongWritable offset, BytesWritable record, Context context)
        throws IOException, InterruptedException {
      byte[] bytes = record.getBytes();
      key.set(bytes, 0, Generate.KEY_BYTES);
      value.set(bytes, Generate.KEY_BYTES, record.getLength() - Generate.KEY_BYTES);
      context.write(key, value);
    }
  }

  /** Partitions of equal size, by the first four bytes of keys. */
  static final class Prefix extends Partitioner<BytesWritable, BytesWritable> {
    @Override
    public int getPartition(BytesWritable key, BytesWritable value, int partitions) {
      long prefix = Integer.toUnsignedLong(WritableComparator.readInt(key.getBytes(), 0));
      return (int) (prefix * partitions >>> Integer.SIZE);
    }
  }
}
