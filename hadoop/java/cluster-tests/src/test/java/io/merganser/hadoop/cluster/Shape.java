package io.merganser.hadoop.cluster;

import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.defer.DeferRules;
import io.merganser.hadoop.defer.StockReason;
import java.io.IOException;
import java.util.List;
import java.util.Random;
import java.util.function.BiConsumer;
import org.apache.hadoop.examples.WordCount;
import org.apache.hadoop.io.BooleanWritable;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.DoubleWritable;
import org.apache.hadoop.io.FloatWritable;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.SequenceFile.CompressionType;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.VIntWritable;
import org.apache.hadoop.io.VLongWritable;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.lib.input.KeyValueTextInputFormat;
import org.apache.hadoop.mapreduce.lib.input.SequenceFileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.SequenceFileOutputFormat;

/**
 * A kind of job: its input, its settings, and whether its map outputs must be deferred.
 *
 * <p>The job counter that must count the map outputs of several spills names their treatment.
 *
 * <p>The output of each job is independent of the order in which map outputs are fetched, because
 * Hadoop doesn't define the order of equal keys of different maps.
 */
record Shape(String name, String way, Input input, Setup setup) {
  /** Completes a job that has its input, output and cluster already. */
  @FunctionalInterface
  interface Setup {
    void configure(Job job) throws IOException;
  }

  @Override
  public String toString() {
    return name;
  }

  /** The shapes that {@link ShapesTest} runs, each unlike the others. */
  static List<Shape> often() {
    return List.of(
        sort4KiB("sort of 4 KiB records", DeferRules.DEFERRED, 2, job -> {}),
        new Shape("text sort", DeferRules.DEFERRED, texts(2, 30_000), Shape::textSort),
        new Shape(
            "word count with combiner",
            StockReason.COMBINER.counter(),
            Input.lines(2, 25_000, (random, n) -> n % 97 + words(random, 14)),
            Shape::wordCount),
        sort4KiB(
            "map outputs of one spill",
            StockReason.FEW_SPILLS.counter(),
            2,
            job -> job.getConfiguration().setInt(MRJobConfig.IO_SORT_MB, 8)),
        sort4KiB(
            "uber job",
            StockReason.UBER.counter(),
            1,
            job -> {
              job.getConfiguration().setBoolean(MRJobConfig.JOB_UBERTASK_ENABLE, true);
              job.getConfiguration().setInt(MRJobConfig.JOB_UBERTASK_MAXREDUCES, 1);
              job.setNumReduceTasks(1);
            }),
        sort4KiB(
            "compressed intermediate data",
            StockReason.COMPRESSED.counter(),
            2,
            job -> job.getConfiguration().setBoolean(MRJobConfig.MAP_OUTPUT_COMPRESS, true)),
        sort4KiB(
            "encrypted intermediate data",
            StockReason.ENCRYPTED.counter(),
            2,
            job ->
                job.getConfiguration()
                    .setBoolean(MRJobConfig.MR_ENCRYPTED_INTERMEDIATE_DATA, true)),
        new Shape(
            "comparator without a registration",
            StockReason.UNKNOWN_ORDER.counter(),
            texts(2, 30_000),
            job -> {
              textSort(job);
              job.setSortComparatorClass(Jobs.Backwards.class);
            }),
        new Shape(
            "secondary sort with grouping comparator",
            DeferRules.DEFERRED,
            pairs(),
            job -> {
              compositeKey(job);
              job.setPartitionerClass(Jobs.Pair.PartitionByText.class);
              job.setGroupingComparatorClass(Jobs.Pair.ByText.class);
              job.setReducerClass(Jobs.Groups.class);
              job.setOutputKeyClass(Text.class);
            }),
        sort4KiB(
            "empty partitions",
            DeferRules.DEFERRED,
            2,
            job -> {
              job.setNumReduceTasks(3);
              job.setPartitionerClass(Jobs.OnlySecond.class);
            }),
        new Shape(
            "more spills than the merge factor",
            DeferRules.DEFERRED,
            sorted(1, 2_600, 4_000),
            job -> {
              sort(job);
              job.getConfiguration().setInt(MRJobConfig.IO_SORT_FACTOR, 10);
            }),
        new Shape(
            "records larger than the sort buffer",
            DeferRules.DEFERRED,
            Input.sequence(
                2,
                120,
                new BytesWritable(),
                new BytesWritable(),
                (random, n, key, value) -> {
                  set(key, Input.bytes(random, 10));
                  set(value, Input.bytes(random, n % 40 == 7 ? 1_500_000 : 20_000));
                }),
            Shape::sort),
        sort4KiB(
            "map outputs larger than the reducer's memory",
            DeferRules.DEFERRED,
            6,
            job -> {
              job.setNumReduceTasks(1);
              onDisk(job);
            }));
  }

  /** The other shapes, which are large, or like one of {@link #often} in most. */
  static List<Shape> seldom() {
    return List.of(
        new Shape(
            "composite key with its order registered",
            DeferRules.DEFERRED,
            pairs(),
            Shape::compositeKey),
        sort4KiB(
            "map without records",
            DeferRules.DEFERRED,
            2,
            job -> job.setMapperClass(Jobs.NoneOfFirstFile.class)),
        new Shape(
            "compressed values",
            DeferRules.DEFERRED,
            Input.sequence(
                2,
                700,
                CompressionType.RECORD,
                new BytesWritable(),
                new Text(),
                (random, n, key, value) -> {
                  set(key, Input.bytes(random, 10));
                  value.set(words(random, 700));
                }),
            job -> {
              sort(job);
              job.setOutputValueClass(Text.class);
              SequenceFileOutputFormat.setCompressOutput(job, true);
              SequenceFileOutputFormat.setOutputCompressionType(job, CompressionType.RECORD);
            }),
        new Shape(
            "numbers with equal keys",
            DeferRules.DEFERRED,
            Input.sequence(
                2,
                60_000,
                new IntWritable(),
                new Text(),
                (random, n, key, value) -> {
                  key.set(random.nextInt(5_000) - 2_500);
                  value.set("v" + n);
                }),
            job -> {
              sort(job);
              job.setReducerClass(Jobs.SortedValues.class);
              job.setOutputKeyClass(IntWritable.class);
              job.setOutputValueClass(Text.class);
            }),
        sort4KiB(
            "more fetched files than three merge passes of Hadoop take",
            DeferRules.DEFERRED,
            32,
            job -> {
              job.setNumReduceTasks(1);
              onDisk(job);
            }),
        ofType("vint keys", new VIntWritable(), (random, key) -> key.set(random.nextInt())),
        ofType("vlong keys", new VLongWritable(), (random, key) -> key.set(random.nextLong())),
        ofType("long keys", new LongWritable(), (random, key) -> key.set(random.nextLong())),
        ofType(
            "float keys", new FloatWritable(), (random, key) -> key.set(random.nextFloat() - 0.5f)),
        ofType(
            "double keys", new DoubleWritable(), (random, key) -> key.set(random.nextGaussian())),
        ofType(
            "boolean keys", new BooleanWritable(), (random, key) -> key.set(random.nextBoolean())),
        ofType("keys of no bytes", NullWritable.get(), (random, key) -> {}));
  }

  private static <K extends Writable> Shape ofType(String name, K key, BiConsumer<Random, K> fill) {
    return new Shape(
        name,
        DeferRules.DEFERRED,
        Input.sequence(
            2,
            20_000,
            key,
            new Text(),
            (random, n, k, value) -> {
              fill.accept(random, k);
              value.set("v" + n + words(random, 12));
            }),
        job -> {
          sort(job);
          job.setReducerClass(Jobs.SortedValues.class);
          job.setOutputKeyClass(key.getClass());
          job.setOutputValueClass(Text.class);
        });
  }

  /** Makes reducers fetch to disk, and Hadoop's own merge of three files begin early. */
  static void onDisk(Job job) {
    job.getConfiguration().setLong(MRJobConfig.REDUCE_MEMORY_TOTAL_BYTES, 1 << 20);
    job.getConfiguration().setInt(MRJobConfig.IO_SORT_FACTOR, 3);
  }

  static Shape sort4KiB(String name, String way, int maps, Setup more) {
    return new Shape(
        name,
        way,
        sorted(maps, 800, 4_072),
        job -> {
          sort(job);
          more.configure(job);
        });
  }

  /**
   * A sort of 4 KiB records whose last map task waits for a gate, and whose reducers wait for all
   * map tasks.
   */
  static Shape gated(String name, int maps, int recordsPerMap, int reducers) {
    return gated(name, sorted(maps, recordsPerMap, 4_072), maps, reducers);
  }

  /** A gated sort of other sequence files, one per map task. */
  static Shape gated(String name, Input input, int maps, int reducers) {
    return new Shape(
        name,
        DeferRules.DEFERRED,
        input,
        job -> {
          sort(job);
          job.setMapperClass(Jobs.Gated.class);
          job.setNumReduceTasks(reducers);
          job.getConfiguration().set(Jobs.Gated.LAST, Input.name(maps - 1));
          job.getConfiguration().setInt(Jobs.Gated.MAPS, maps);
          job.getConfiguration().setFloat(MRJobConfig.COMPLETED_MAPS_FOR_REDUCE_SLOWSTART, 1);
        });
  }

  /** Records with keys of ten random bytes. */
  static Input sorted(int files, int recordsPerFile, int valueBytes) {
    return Input.sequence(
        files,
        recordsPerFile,
        new BytesWritable(),
        new BytesWritable(),
        (random, n, key, value) -> {
          set(key, Input.bytes(random, 10));
          set(value, Input.bytes(random, valueBytes));
        });
  }

  /** Sorts sequence files of {@link #sorted}. */
  static void sort(Job job) {
    job.setInputFormatClass(SequenceFileInputFormat.class);
    job.setOutputFormatClass(SequenceFileOutputFormat.class);
    job.setOutputKeyClass(BytesWritable.class);
    job.setOutputValueClass(BytesWritable.class);
    job.setNumReduceTasks(2);
  }

  private static Input texts(int files, int lines) {
    return Input.lines(
        files,
        lines,
        (random, n) -> Long.toString(n * 7_919 % 999_983, 36) + "\t" + n + words(random, 12));
  }

  private static void textSort(Job job) {
    job.setInputFormatClass(KeyValueTextInputFormat.class);
    job.setOutputKeyClass(Text.class);
    job.setOutputValueClass(Text.class);
    job.setNumReduceTasks(2);
  }

  private static Input pairs() {
    return Input.lines(
        2, 40_000, (random, n) -> Input.word(random) + " " + n * 31 % 80_000 + words(random, 6));
  }

  private static void compositeKey(Job job) {
    job.setMapperClass(Jobs.ToPairs.class);
    job.setMapOutputKeyClass(Jobs.Pair.class);
    job.setSortComparatorClass(Jobs.Pair.Order.class);
    job.getConfiguration()
        .set(Keys.ORDER_PREFIX + Jobs.Pair.Order.class.getName(), "text,int:desc");
    job.setOutputKeyClass(Jobs.Pair.class);
    job.setOutputValueClass(Text.class);
    job.setNumReduceTasks(2);
  }

  private static void wordCount(Job job) {
    job.setMapperClass(WordCount.TokenizerMapper.class);
    job.setCombinerClass(WordCount.IntSumReducer.class);
    job.setReducerClass(WordCount.IntSumReducer.class);
    job.setOutputKeyClass(Text.class);
    job.setOutputValueClass(IntWritable.class);
    job.setNumReduceTasks(2);
  }

  private static String words(Random random, int count) {
    StringBuilder line = new StringBuilder();
    for (int i = 0; i < count; i++) {
      line.append(' ').append(Input.word(random));
    }
    return line.toString();
  }

  private static void set(BytesWritable writable, byte[] bytes) {
    writable.set(bytes, 0, bytes.length);
  }
}
