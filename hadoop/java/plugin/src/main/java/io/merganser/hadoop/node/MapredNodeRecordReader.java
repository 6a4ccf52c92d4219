package io.merganser.hadoop.node;

import java.io.IOException;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapred.FileSplit;
import org.apache.hadoop.mapred.RecordReader;

/** The lines of a split, in Hadoop's old API; none if the node has mapped it. */
final class MapredNodeRecordReader implements RecordReader<LongWritable, Text> {
  /** Opens the job's own reader, which reads from HDFS. */
  @FunctionalInterface
  interface Opener {
    RecordReader<LongWritable, Text> open() throws IOException;
  }

  private final NodeMap map;
  private final FileSplit split;
  private final Opener opener;
  private RecordReader<LongWritable, Text> own;
  private boolean mapped;

  MapredNodeRecordReader(NodeMap map, FileSplit split, Opener opener) {
    this.map = map;
    this.split = split;
    this.opener = opener;
  }

  @Override
  public LongWritable createKey() {
    return new LongWritable();
  }

  @Override
  public Text createValue() {
    return new Text();
  }

  @Override
  public boolean next(LongWritable key, Text value) throws IOException {
    if (own == null && !mapped) {
      mapped = map.run(new FileSlice(split.getPath(), split.getStart(), split.getLength()));
      if (!mapped) {
        own = opener.open();
      }
    }
    return !mapped && own.next(key, value);
  }

  @Override
  public long getPos() throws IOException {
    if (own != null) {
      return own.getPos();
    }
    return split.getStart() + (mapped ? split.getLength() : 0);
  }

  @Override
  public float getProgress() throws IOException {
    if (own != null) {
      return own.getProgress();
    }
    return mapped ? 1 : 0;
  }

  @Override
  public void close() throws IOException {
    if (own != null) {
      own.close();
    }
  }
}
