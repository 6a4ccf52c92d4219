package io.merganser.hadoop.cluster;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.WritableComparable;
import org.apache.hadoop.io.WritableComparator;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Partitioner;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.lib.input.FileSplit;

/** The mappers, reducers and keys of the jobs in these tests. */
final class Jobs {
  private Jobs() {}

  /** A text and a number; {@link Order} reverses the order of the number. */
  public static final class Pair implements WritableComparable<Pair> {
    final Text text = new Text();
    final IntWritable number = new IntWritable();

    @Override
    public void write(DataOutput out) throws IOException {
      text.write(out);
      number.write(out);
    }

    @Override
    public void readFields(DataInput in) throws IOException {
      text.readFields(in);
      number.readFields(in);
    }

    @Override
    public int compareTo(Pair other) {
      int texts = text.compareTo(other.text);
      return texts != 0 ? texts : other.number.compareTo(number);
    }

    @Override
    public int hashCode() {
      return text.hashCode() + number.get();
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof Pair pair && compareTo(pair) == 0;
    }

    @Override
    public String toString() {
      return text + "/" + number;
    }

    /** Text ascending, then number descending. */
    public static final class Order extends WritableComparator {
      public Order() {
        super(Pair.class, true);
      }
    }

    /** Pairs of one text are one group. */
    public static final class ByText extends WritableComparator {
      public ByText() {
        super(Pair.class, true);
      }

      @Override
      @SuppressWarnings("rawtypes")
      public int compare(WritableComparable a, WritableComparable b) {
        return ((Pair) a).text.compareTo(((Pair) b).text);
      }
    }

    /** Pairs of one text go to one reducer. */
    public static final class PartitionByText extends Partitioner<Pair, Text> {
      @Override
      public int getPartition(Pair key, Text value, int partitions) {
        return (key.text.hashCode() & Integer.MAX_VALUE) % partitions;
      }
    }
  }

  /** The first words of a line as a {@link Pair}, the rest as its value. */
  public static final class ToPairs extends Mapper<LongWritable, Text, Pair, Text> {
    private final Pair pair = new Pair();
    private final Text rest = new Text();

    @Override
    protected void map(LongWritable offset, Text line, Context context)
        throws IOException, InterruptedException {
      String[] words = line.toString().split(" ", 3);
      pair.text.set(words[0]);
      pair.number.set(Integer.parseInt(words[1]));
      rest.set(words[2]);
      context.write(pair, rest);
    }
  }

  /** One line per group: the text of its key, its numbers in order, and a hash of its values. */
  public static final class Groups extends Reducer<Pair, Text, Text, Text> {
    @Override
    protected void reduce(Pair key, Iterable<Text> values, Context context)
        throws IOException, InterruptedException {
      String text = key.text.toString();
      StringBuilder numbers = new StringBuilder();
      int hash = 0;
      for (Text value : values) {
        numbers.append(key.number.get()).append(' ');
        hash += value.hashCode();
      }
      context.write(new Text(text), new Text(numbers.append(hash).toString()));
    }
  }

  /** Texts from the last to the first. */
  public static final class Backwards extends WritableComparator {
    public Backwards() {
      super(Text.class, true);
    }

    @Override
    public int compare(byte[] a, int aStart, int aLength, byte[] b, int bStart, int bLength) {
      return -Text.Comparator.compareBytes(a, aStart + 1, aLength - 1, b, bStart + 1, bLength - 1);
    }

    @Override
    @SuppressWarnings({"rawtypes", "unchecked"})
    public int compare(WritableComparable a, WritableComparable b) {
      return b.compareTo(a);
    }
  }

  /** Sends everything to the second of the partitions. */
  public static final class OnlySecond<K, V> extends Partitioner<K, V> {
    @Override
    public int getPartition(K key, V value, int partitions) {
      return 1 % partitions;
    }
  }

  /** Passes records on, except in the map task of the first file, which has no output. */
  public static final class NoneOfFirstFile<K, V> extends Mapper<K, V, K, V> {
    @Override
    public void run(Context context) throws IOException, InterruptedException {
      if (!((FileSplit) context.getInputSplit()).getPath().getName().endsWith("-000")) {
        super.run(context);
      }
    }
  }

  /** Sorts the values of a key, for keys that occur more than once. */
  public static final class SortedValues<K> extends Reducer<K, Text, K, Text> {
    @Override
    protected void reduce(K key, Iterable<Text> values, Context context)
        throws IOException, InterruptedException {
      List<String> all = new ArrayList<>();
      for (Text value : values) {
        all.add(value.toString());
      }
      Collections.sort(all);
      for (String value : all) {
        context.write(key, new Text(value));
      }
    }
  }

  /**
   * Passes records on. The map task of the last file waits until the file named by {@link #GATE}
   * exists, so that a test can change the outputs of the others before a reducer asks for them.
   */
  public static final class Gated<K, V> extends Mapper<K, V, K, V> {
    static final String GATE = "test.gate";
    static final String LAST = "test.gate.last";
    static final String MAPS = "test.gate.maps";

    @Override
    public void run(Context context) throws IOException, InterruptedException {
      String file = ((FileSplit) context.getInputSplit()).getPath().getName();
      if (file.equals(context.getConfiguration().get(LAST))) {
        java.nio.file.Path gate = java.nio.file.Path.of(context.getConfiguration().get(GATE));
        while (!java.nio.file.Files.exists(gate)) {
          context.progress();
          Thread.sleep(50);
        }
      }
      super.run(context);
    }
  }

  /** Passes records on. The first attempt for the last file takes a minute longer. */
  public static final class SlowFirstAttempt<K, V> extends Mapper<K, V, K, V> {
    @Override
    public void run(Context context) throws IOException, InterruptedException {
      String file = ((FileSplit) context.getInputSplit()).getPath().getName();
      boolean cluster = context.getConfiguration().get("mapreduce.framework.name").equals("yarn");
      if (cluster
          && file.equals(context.getConfiguration().get(Gated.LAST))
          && context.getTaskAttemptID().getId() == 0) {
        Thread.sleep(60_000);
      }
      super.run(context);
    }
  }
}
