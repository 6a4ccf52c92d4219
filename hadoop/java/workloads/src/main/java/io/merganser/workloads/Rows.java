package io.merganser.workloads;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapreduce.InputFormat;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptContext;

/** The numbers from 0 on, in a configured number of splits. */
public final class Rows extends InputFormat<LongWritable, NullWritable> {
  /** The setting with the number of rows. */
  static final String ROWS = "merganser.workloads.rows";

  /** The setting with the number of splits. Hadoop's own is set to 1 for jobs in one process. */
  static final String MAPS = "merganser.workloads.maps";

  @Override
  public List<InputSplit> getSplits(JobContext job) {
    long rows = job.getConfiguration().getLong(ROWS, 0);
    int splits = job.getConfiguration().getInt(MAPS, 1);
    List<InputSplit> all = new ArrayList<>();
    for (int i = 0; i < splits; i++) {
      // Quotient and remainder are computed apart, because rows * i may overflow a long.
      all.add(new Range(bound(rows, splits, i), bound(rows, splits, i + 1)));
    }
    return all;
  }

  private static long bound(long rows, int splits, int i) {
    return rows / splits * i + rows % splits * i / splits;
  }

  @Override
  public RecordReader<LongWritable, NullWritable> createRecordReader(
      InputSplit split, TaskAttemptContext context) {
    return new Counter();
  }

  /** The numbers from {@code first} to {@code end}, exclusive. */
  static final class Range extends InputSplit implements Writable {
    private long first;
    private long end;

    /** Used by Hadoop, which then reads the fields. */
    @SuppressWarnings("unused")
    Range() {}

    Range(long first, long end) {
      this.first = first;
      this.end = end;
    }

    @Override
    public long getLength() {
      return end - first;
    }

    @Override
    public String[] getLocations() {
      return new String[0];
    }

    @Override
    public void write(DataOutput out) throws IOException {
      out.writeLong(first);
      out.writeLong(end);
    }

    @Override
    public void readFields(DataInput in) throws IOException {
      first = in.readLong();
      end = in.readLong();
    }
  }

  private static final class Counter extends RecordReader<LongWritable, NullWritable> {
    private final LongWritable row = new LongWritable();
    private Range range;
    private long next;

    @Override
    public void initialize(InputSplit split, TaskAttemptContext context) {
      range = (Range) split;
      next = range.first;
    }

    @Override
    public boolean nextKeyValue() {
      if (next == range.end) {
        return false;
      }
      row.set(next++);
      return true;
    }

    @Override
    public LongWritable getCurrentKey() {
      return row;
    }

    @Override
    public NullWritable getCurrentValue() {
      return NullWritable.get();
    }

    @Override
    public float getProgress() {
      return range.first == range.end ? 1 : (float) (next - range.first) / range.getLength();
    }

    @Override
    public void close() {}
  }
}
