package io.merganser.workloads;

import java.io.IOException;
import java.util.Locale;
import java.util.SplittableRandom;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.lib.output.SequenceFileOutputFormat;
import org.apache.hadoop.mapreduce.lib.output.TextOutputFormat;
import org.apache.hadoop.util.Tool;

/**
 * Makes the inputs of the other jobs. The bytes of a row depend only on its number, so the same
 * command makes the same data on every cluster and with any number of map tasks.
 */
public final class Generate extends Configured implements Tool {
  /** Bytes of a record, key and value together. */
  static final String RECORD_BYTES = "merganser.workloads.record-bytes";

  /** Rows of the table that visits refer to. */
  static final String USERS = "merganser.workloads.users";

  /** Bytes of a key of {@link Kind#RECORDS} and {@link Kind#FIXED}. */
  static final int KEY_BYTES = 10;

  private static final String KIND = "merganser.workloads.kind";

  /** The kinds of rows. */
  enum Kind {
    /** A sequence file of random bytes: a key of 10, and a value. */
    RECORDS,
    /** The same records one after the other, with nothing between them. */
    FIXED,
    /** A line of text: a title, a tab, and words. Few words are frequent and most are rare. */
    TEXT,
    /** One line per user: id, tab, name and address. */
    USERS,
    /** One line per visit: id of the user, tab, page, agent and query. */
    VISITS
  }

  @Override
  public int run(String[] args) throws Exception {
    if (args.length != 3) {
      System.err.println("generate records|fixed|text|users|visits ROWS OUTPUT");
      return 2;
    }
    Kind kind = Kind.valueOf(args[0].toUpperCase(Locale.ROOT));
    getConf().setEnum(KIND, kind);
    getConf().setLong(Rows.ROWS, Long.parseLong(args[1]));
    Job job = Job.getInstance(getConf(), "generate " + args[0]);
    job.setJarByClass(Generate.class);
    job.setInputFormatClass(Rows.class);
    job.setNumReduceTasks(0);
    switch (kind) {
      case RECORDS, FIXED -> {
        job.setMapperClass(RecordMapper.class);
        job.setOutputKeyClass(BytesWritable.class);
        job.setOutputValueClass(BytesWritable.class);
        job.setOutputFormatClass(
            kind == Kind.FIXED ? FixedOutputFormat.class : SequenceFileOutputFormat.class);
      }
      case TEXT, USERS, VISITS -> {
        job.setMapperClass(LineMapper.class);
        job.setOutputKeyClass(Text.class);
        job.setOutputValueClass(NullWritable.class);
        job.setOutputFormatClass(TextOutputFormat.class);
      }
    }
    FileOutputFormat.setOutputPath(job, new Path(args[2]));
    return job.waitForCompletion(true) ? 0 : 1;
  }

  /** A source of random numbers for a row. */
  static SplittableRandom random(Kind kind, long row) {
    return new SplittableRandom(row * Kind.values().length + kind.ordinal());
  }

  static final class RecordMapper
      extends Mapper<LongWritable, NullWritable, BytesWritable, BytesWritable> {
    private final BytesWritable key = new BytesWritable();
    private final BytesWritable value = new BytesWritable();
    private int valueBytes;

    @Override
    protected void setup(Context context) {
      int bytes = context.getConfiguration().getInt(RECORD_BYTES, 4096);
      if (bytes < KEY_BYTES) {
        throw new IllegalArgumentException(
            RECORD_BYTES + " is " + bytes + ", but a key alone has " + KEY_BYTES);
      }
      valueBytes = bytes - KEY_BYTES;
    }

    @Override
    protected void map(LongWritable row, NullWritable nothing, Context context)
        throws IOException, InterruptedException {
      SplittableRandom random = random(Kind.RECORDS, row.get());
      byte[] bytes = new byte[KEY_BYTES];
      random.nextBytes(bytes);
      key.set(bytes, 0, KEY_BYTES);
      bytes = new byte[valueBytes];
      random.nextBytes(bytes);
      value.set(bytes, 0, valueBytes);
      context.write(key, value);
    }
  }

  static final class LineMapper extends Mapper<LongWritable, NullWritable, Text, NullWritable> {
    private final Text line = new Text();
    private Kind kind;
    private long users;

    @Override
    protected void setup(Context context) {
      kind = context.getConfiguration().getEnum(KIND, Kind.TEXT);
      users = context.getConfiguration().getLong(USERS, 1);
    }

    @Override
    protected void map(LongWritable row, NullWritable nothing, Context context)
        throws IOException, InterruptedException {
      line.set(line(kind, row.get(), users));
      context.write(line, NullWritable.get());
    }
  }

  /** The line of a row. */
  static String line(Kind kind, long row, long users) {
    SplittableRandom random = random(kind, row);
    StringBuilder text = new StringBuilder();
    switch (kind) {
      case TEXT -> {
        // The number at the end makes titles unique, and the word before it spreads them.
        text.append(word(random.nextInt(WORDS))).append('-').append(row).append('\t');
        words(random, 60 + random.nextInt(120), text);
      }
      case USERS -> {
        text.append(user(row)).append('\t');
        words(random, 12, text);
      }
      case VISITS -> {
        text.append(user(random.nextLong(users))).append("\thttp://");
        words(random, 60 + random.nextInt(60), text);
        text.append(' ').append(row);
      }
      default -> throw new IllegalArgumentException(kind + " is not a kind of text");
    }
    return text.toString();
  }

  /** Mixes the numbers, so that neighbours in the table are not neighbours in order. */
  private static String user(long row) {
    return "u" + Long.toUnsignedString(row * 0x9E3779B97F4A7C15L, Character.MAX_RADIX);
  }

  private static final int WORDS = 50_000;

  private static void words(SplittableRandom random, int count, StringBuilder text) {
    for (int i = 0; i < count; i++) {
      if (i > 0) {
        text.append(' ');
      }
      // The logarithm of the rank is uniform: a word's frequency is about 1 over its rank.
      text.append(word((int) Math.exp(random.nextDouble(Math.log(WORDS)))));
    }
  }

  /** A word by rank; frequent ones are short. */
  static String word(int rank) {
    char[] letters = new char[3 + Integer.toString(rank).length()];
    SplittableRandom random = new SplittableRandom(rank);
    for (int i = 0; i < letters.length; i++) {
      letters[i] = (char) ('a' + random.nextInt(26));
    }
    return new String(letters);
  }
}
