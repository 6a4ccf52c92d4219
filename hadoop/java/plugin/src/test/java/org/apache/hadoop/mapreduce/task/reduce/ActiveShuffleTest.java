package org.apache.hadoop.mapreduce.task.reduce;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.nativemerge.NativeLibrary;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.RawComparator;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.WritableComparator;
import org.apache.hadoop.mapreduce.Counters;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.MRConfig;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Whole jobs in this process, with Hadoop's shuffle and with ours. */
class ActiveShuffleTest {
  private static final int MAPS = 12;
  private static final int REDUCES = 2;

  @TempDir private Path folder;
  private int runs;

  /** Makes records from a seed: keys that repeat, values of all lengths. */
  public static final class Generate extends Mapper<LongWritable, Text, Text, BytesWritable> {
    @Override
    protected void map(LongWritable offset, Text seed, Context context)
        throws IOException, InterruptedException {
      Random random = new Random(Long.parseLong(seed.toString()));
      for (int records = random.nextInt(400); records > 0; records--) {
        byte[] value = new byte[random.nextInt(200)];
        random.nextBytes(value);
        context.write(new Text("key " + random.nextInt(900)), new BytesWritable(value));
      }
    }
  }

  /** Writes the values of a key, independently of their order. */
  public static final class Summarize extends Reducer<Text, BytesWritable, Text, Text> {
    @Override
    protected void reduce(Text key, Iterable<BytesWritable> values, Context context)
        throws IOException, InterruptedException {
      String name = key.toString();
      long count = 0;
      long sum = 0;
      for (BytesWritable value : values) {
        count++;
        sum += value.hashCode() * 31L + value.getLength();
      }
      context.write(new Text(name), new Text(count + " " + sum));
    }
  }

  /** Keeps the longest value of a key. */
  public static final class Longest extends Reducer<Text, BytesWritable, Text, BytesWritable> {
    @Override
    protected void reduce(Text key, Iterable<BytesWritable> values, Context context)
        throws IOException, InterruptedException {
      BytesWritable longest = new BytesWritable();
      for (BytesWritable value : values) {
        if (value.compareTo(longest) > 0) {
          longest.set(value);
        }
      }
      context.write(key, longest);
    }
  }

  /** Reads the first ten groups only, and at most one value of each. */
  public static final class Half extends Reducer<Text, BytesWritable, Text, Text> {
    @Override
    public void run(Context context) throws IOException, InterruptedException {
      for (int group = 0; group < 10 && context.nextKey(); group++) {
        Text key = new Text(context.getCurrentKey());
        context.write(key, new Text(String.valueOf(context.getValues().iterator().hasNext())));
      }
    }
  }

  /** Text's order, in a comparator without a registration. */
  public static final class Unknown extends Text.Comparator {}

  /** Groups keys by their first five characters. */
  public static final class Prefix extends WritableComparator {
    /** Used by Hadoop. */
    public Prefix() {
      super(Text.class, true);
    }

    @Override
    @SuppressWarnings("rawtypes")
    public int compare(
        org.apache.hadoop.io.WritableComparable a, org.apache.hadoop.io.WritableComparable b) {
      return start(a).compareTo(start(b));
    }

    private static String start(Object key) {
      String text = key.toString();
      return text.substring(0, Math.min(5, text.length()));
    }
  }

  @BeforeEach
  void writeSeeds() throws IOException {
    Files.createDirectories(folder.resolve("in"));
    for (int map = 0; map < MAPS; map++) {
      Files.writeString(folder.resolve("in/" + map), map + "\n");
    }
  }

  /** The results of a job. */
  private record Outcome(List<byte[]> parts, Counters counters) {
    long count(Enum<?> counter) {
      return counters.findCounter(counter).getValue();
    }

    long count(String name) {
      return counters.findCounter("Merganser", name).getValue();
    }
  }

  private interface Shape {
    void of(Job job);
  }

  private Outcome run(boolean active, Map<String, String> settings, Shape shape) throws Exception {
    Path out = folder.resolve("out" + runs++);
    Configuration conf = new Configuration();
    conf.set("hadoop.tmp.dir", folder.resolve("tmp").toString());
    conf.set(MRConfig.LOCAL_DIR, folder.resolve("local").toString());
    conf.set(MRConfig.FRAMEWORK_NAME, MRConfig.LOCAL_FRAMEWORK_NAME);
    conf.setInt(Job.COMPLETION_POLL_INTERVAL_KEY, 20);
    conf.setInt(MRJobConfig.IO_SORT_MB, 1);
    conf.setInt(MRJobConfig.IO_SORT_FACTOR, 3);
    // Larger outputs go to files, small ones to memory.
    conf.setLong(MRJobConfig.REDUCE_MEMORY_TOTAL_BYTES, 100_000);
    if (active) {
      conf.set(MRConfig.SHUFFLE_CONSUMER_PLUGIN, ActiveShuffle.class.getName());
    }
    settings.forEach(conf::set);
    Job job = Job.getInstance(conf);
    FileInputFormat.addInputPath(job, new org.apache.hadoop.fs.Path(folder.resolve("in").toUri()));
    FileOutputFormat.setOutputPath(job, new org.apache.hadoop.fs.Path(out.toUri()));
    job.setMapperClass(Generate.class);
    job.setReducerClass(Summarize.class);
    job.setNumReduceTasks(REDUCES);
    job.setMapOutputKeyClass(Text.class);
    job.setMapOutputValueClass(BytesWritable.class);
    job.setOutputKeyClass(Text.class);
    job.setOutputValueClass(Text.class);
    shape.of(job);
    assertTrue(job.waitForCompletion(false));
    List<byte[]> parts = new ArrayList<>();
    for (int reduce = 0; reduce < REDUCES; reduce++) {
      parts.add(Files.readAllBytes(out.resolve(String.format("part-r-%05d", reduce))));
    }
    return new Outcome(parts, job.getCounters());
  }

  private Outcome assertSameAsStock(Map<String, String> settings, Shape shape) throws Exception {
    Outcome stock = run(false, settings, shape);
    Outcome ours = run(true, settings, shape);
    for (int reduce = 0; reduce < REDUCES; reduce++) {
      assertArrayEquals(stock.parts().get(reduce), ours.parts().get(reduce));
    }
    for (TaskCounter counter :
        List.of(
            TaskCounter.REDUCE_INPUT_GROUPS,
            TaskCounter.REDUCE_INPUT_RECORDS,
            TaskCounter.REDUCE_OUTPUT_RECORDS,
            TaskCounter.REDUCE_SHUFFLE_BYTES,
            TaskCounter.SHUFFLED_MAPS,
            TaskCounter.MERGED_MAP_OUTPUTS)) {
      assertEquals(stock.count(counter), ours.count(counter), counter.toString());
    }
    assertTrue(ours.count(TaskCounter.SPILLED_RECORDS) <= stock.count(TaskCounter.SPILLED_RECORDS));
    return ours;
  }

  private static String ownMerge() {
    return NativeLibrary.whyNot().isEmpty() ? "REDUCE_MERGE_NATIVE" : "REDUCE_MERGE_JAVA";
  }

  @Test
  void theSameOutputWithFilesMergedOnce() throws Exception {
    Outcome stock = run(false, Map.of(), job -> {});
    Outcome ours = assertSameAsStock(Map.of(), job -> {});
    assertEquals(REDUCES, ours.count(ownMerge()));
    assertTrue(ours.count("ON_DISK_PASSES_SAVED") > 0);
    assertTrue(ours.count(TaskCounter.SPILLED_RECORDS) < stock.count(TaskCounter.SPILLED_RECORDS));
  }

  @Test
  void theSameOutputInJava() throws Exception {
    Outcome ours = assertSameAsStock(Map.of(Keys.REDUCE_NATIVE, "false"), job -> {});
    assertEquals(REDUCES, ours.count("REDUCE_MERGE_JAVA"));
  }

  @Test
  void theSameOutputWithOutputsLeftInMemory() throws Exception {
    Map<String, String> settings = Map.of(MRJobConfig.REDUCE_INPUT_BUFFER_PERCENT, "0.6");
    assertEquals(REDUCES, assertSameAsStock(settings, job -> {}).count(ownMerge()));
  }

  @Test
  void theSameOutputFromCompressedMapOutputs() throws Exception {
    Map<String, String> settings = Map.of(MRJobConfig.MAP_OUTPUT_COMPRESS, "true");
    assertEquals(REDUCES, assertSameAsStock(settings, job -> {}).count("REDUCE_MERGE_STOCK"));
  }

  @Test
  void theSameOutputFromEncryptedMapOutputs() throws Exception {
    Map<String, String> settings = Map.of(MRJobConfig.MR_ENCRYPTED_INTERMEDIATE_DATA, "true");
    assertEquals(REDUCES, assertSameAsStock(settings, job -> {}).count("REDUCE_MERGE_STOCK"));
  }

  @Test
  void theSameOutputWithAnUnknownComparator() throws Exception {
    Shape shape = job -> job.setSortComparatorClass(Unknown.class);
    assertEquals(REDUCES, assertSameAsStock(Map.of(), shape).count("REDUCE_MERGE_STOCK"));
    Map<String, String> registered = Map.of(Keys.ORDER_PREFIX + Unknown.class.getName(), "text");
    assertEquals(REDUCES, assertSameAsStock(registered, shape).count(ownMerge()));
    Map<String, String> wrong = Map.of(Keys.ORDER_PREFIX + Unknown.class.getName(), "raw");
    Outcome found = assertSameAsStock(wrong, shape);
    assertEquals(REDUCES, found.count("REDUCE_MERGE_STOCK"));
    assertEquals(REDUCES, found.count("REDUCE_STOCK_WRONG_ORDER"));
  }

  @Test
  void theSameOutputWithACombiner() throws Exception {
    assertSameAsStock(Map.of(), job -> job.setCombinerClass(Longest.class));
  }

  @Test
  void theSameGroups() throws Exception {
    Class<? extends RawComparator<?>> prefix = prefix();
    assertSameAsStock(Map.of(), job -> job.setGroupingComparatorClass(prefix));
  }

  @SuppressWarnings("unchecked") // Hadoop declares its comparators raw.
  private static Class<? extends RawComparator<?>> prefix() {
    return (Class<? extends RawComparator<?>>) (Class<?>) Prefix.class;
  }

  @Test
  void aReducerThatStopsEarlyGetsTheSame() throws Exception {
    Shape shape = job -> job.setReducerClass(Half.class);
    Outcome stock = run(false, Map.of(), shape);
    Outcome ours = run(true, Map.of(), shape);
    assertArrayEquals(stock.parts().get(0), ours.parts().get(0));
  }
}
