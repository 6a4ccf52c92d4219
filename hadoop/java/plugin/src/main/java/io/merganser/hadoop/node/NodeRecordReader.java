package io.merganser.hadoop.node;

import java.io.IOException;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.input.FileSplit;

/** The records of a split; none if the node has mapped it. */
final class NodeRecordReader<K, V> extends RecordReader<K, V> {
  private enum State {
    NOT_BEGUN,
    MAPPED,
    ON_HOST
  }

  private final RecordReader<K, V> own;
  private final Class<?> inputFormat;
  private InputSplit split;
  private TaskAttemptContext context;
  private State state = State.NOT_BEGUN;

  /**
   * @param own the reader of the job's own input format, not initialized
   * @param inputFormat the job's own input format
   */
  NodeRecordReader(RecordReader<K, V> own, Class<?> inputFormat) {
    this.own = own;
    this.inputFormat = inputFormat;
  }

  @Override
  public void initialize(InputSplit given, TaskAttemptContext givenContext) {
    split = given;
    context = givenContext;
  }

  @Override
  public boolean nextKeyValue() throws IOException, InterruptedException {
    if (state == State.NOT_BEGUN) {
      state = mapOnNode() ? State.MAPPED : State.ON_HOST;
      if (state == State.ON_HOST) {
        own.initialize(split, context);
      }
    }
    return state == State.ON_HOST && own.nextKeyValue();
  }

  private boolean mapOnNode() {
    NodeMap map =
        new NodeMap(
            context.getTaskAttemptID(),
            TaskCounters.of(context),
            context.getNumReduceTasks(),
            inputFormat);
    if (split instanceof FileSplit file) {
      return map.run(new FileSlice(file.getPath(), file.getStart(), file.getLength()));
    }
    map.refuse(HostReason.UNKNOWN_INPUT, split.getClass().getName() + " is not a split of a file");
    return false;
  }

  @Override
  public K getCurrentKey() throws IOException, InterruptedException {
    return own.getCurrentKey();
  }

  @Override
  public V getCurrentValue() throws IOException, InterruptedException {
    return own.getCurrentValue();
  }

  @Override
  public float getProgress() throws IOException, InterruptedException {
    return switch (state) {
      case NOT_BEGUN -> 0;
      case MAPPED -> 1;
      case ON_HOST -> own.getProgress();
    };
  }

  @Override
  public void close() throws IOException {
    if (state == State.ON_HOST) {
      own.close();
    }
  }
}
