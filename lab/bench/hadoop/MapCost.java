import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.OutputCommitter;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.NullOutputFormat;

/**
 * Processor time of one map task of Hadoop for each byte of its input: its reader, its mapper, its sort, its only spill. One
 * job of one map in this process (LocalJobRunner), so a fresh JVM as a task has. All threads of the process are
 * counted from the mapper's setup until the task asks whether it has to commit, which is after its last spill.
 *
 * <pre>
 *   java -cp HADOOP_JARS lab/bench/hadoop/MapCost.java sort 64          records of 100 bytes; key 10, value 90, as TeraSort's
 *   java -cp HADOOP_JARS lab/bench/hadoop/MapCost.java kmeans 64 100    points of 8 decimal numbers against 100 centers
 * </pre>
 */
public final class MapCost {
  private static final int DIMENSIONS = 8;
  private static final OperatingSystemMXBean SYSTEM =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  private static volatile long began;
  private static volatile long ended;

  private MapCost() {}

  /** Hands out what it reads, as TeraSort's map does. */
  public static final class Sort extends Mapper<LongWritable, Text, Text, Text> {
    private final Text key = new Text();
    private final Text value = new Text();

    @Override
    protected void setup(Context context) {
      began = SYSTEM.getProcessCpuTime();
    }

    @Override
    protected void map(LongWritable at, Text line, Context context)
        throws IOException, InterruptedException {
      key.set(line.getBytes(), 0, 10);
      value.set(line.getBytes(), 10, line.getLength() - 10);
      context.write(key, value);
    }
  }

  /** Assigns each point to the nearest center, and hands out the sums of points in the end, as a combiner would. */
  public static final class KMeans extends Mapper<LongWritable, Text, IntWritable, Text> {
    private double[][] centers;
    private double[][] sums;

    @Override
    protected void setup(Context context) {
      int count = context.getConfiguration().getInt("centers", 10);
      Random random = new Random(7);
      centers = new double[count][];
      for (int c = 0; c < count; c++) {
        centers[c] = random.doubles(DIMENSIONS).toArray();
      }
      sums = new double[count][DIMENSIONS];
      began = SYSTEM.getProcessCpuTime();
    }

    @Override
    protected void map(LongWritable at, Text line, Context context) {
      String[] words = line.toString().split(" ");
      double[] point = new double[DIMENSIONS];
      for (int d = 0; d < DIMENSIONS; d++) {
        point[d] = Double.parseDouble(words[d]);
      }
      int nearest = 0;
      double least = Double.MAX_VALUE;
      for (int c = 0; c < centers.length; c++) {
        double distance = 0;
        for (int d = 0; d < DIMENSIONS; d++) {
          double difference = point[d] - centers[c][d];
          distance += difference * difference;
        }
        if (distance < least) {
          least = distance;
          nearest = c;
        }
      }
      for (int d = 0; d < DIMENSIONS; d++) {
        sums[nearest][d] += point[d];
      }
    }

    @Override
    protected void cleanup(Context context) throws IOException, InterruptedException {
      for (int c = 0; c < sums.length; c++) {
        context.write(new IntWritable(c), new Text(java.util.Arrays.toString(sums[c])));
      }
    }
  }

  /** Writes nothing, and notices the end of the map task. */
  public static final class Nothing extends NullOutputFormat<Object, Object> {
    @Override
    public OutputCommitter getOutputCommitter(TaskAttemptContext context) {
      return new OutputCommitter() {
        @Override
        public void setupJob(JobContext job) {}

        @Override
        public void setupTask(TaskAttemptContext task) {}

        @Override
        public boolean needsTaskCommit(TaskAttemptContext task) {
          if (task.getTaskAttemptID().getTaskType() == TaskType.MAP) {
            ended = SYSTEM.getProcessCpuTime();
          }
          return false;
        }

        @Override
        public void commitTask(TaskAttemptContext task) {}

        @Override
        public void abortTask(TaskAttemptContext task) {}
      };
    }
  }

  private static void write(File file, boolean points, long bytes) throws IOException {
    Random random = new Random(1);
    try (OutputStream out = new BufferedOutputStream(new FileOutputStream(file), 1 << 20)) {
      for (long written = 0; written < bytes; ) {
        StringBuilder line = new StringBuilder();
        if (points) {
          for (int d = 0; d < DIMENSIONS; d++) {
            line.append(String.format(Locale.ROOT, d == 0 ? "%.6f" : " %.6f", random.nextDouble()));
          }
        } else {
          while (line.length() < 99) {
            line.append((char) ('!' + random.nextInt(94)));
          }
        }
        byte[] all = line.append('\n').toString().getBytes(StandardCharsets.US_ASCII);
        out.write(all);
        written += all.length;
      }
    }
  }

  public static void main(String[] words) throws Exception {
    boolean points = words[0].equals("kmeans");
    File file = new File(System.getProperty("java.io.tmpdir"), "map-cost-" + words[0] + "-" + words[1]);
    if (!file.exists()) {
      write(file, points, Long.parseLong(words[1]) * 1_000_000);
    }
    Configuration conf = new Configuration();
    conf.set("mapreduce.framework.name", "local");
    conf.set("fs.defaultFS", "file:///");
    // One spill, and one split.
    conf.setInt("mapreduce.task.io.sort.mb", 400);
    conf.setLong("mapreduce.input.fileinputformat.split.minsize", Long.MAX_VALUE / 2);
    conf.setInt("centers", words.length > 2 ? Integer.parseInt(words[2]) : 10);
    Job job = Job.getInstance(conf);
    job.setJarByClass(MapCost.class);
    job.setMapperClass(points ? KMeans.class : Sort.class);
    job.setMapOutputKeyClass(points ? IntWritable.class : Text.class);
    job.setMapOutputValueClass(Text.class);
    job.setReducerClass(Reducer.class);
    job.setOutputFormatClass(Nothing.class);
    FileInputFormat.addInputPath(job, new Path(file.toURI()));
    if (!job.waitForCompletion(false)) {
      throw new IllegalStateException("the job failed");
    }
    double nanos = ended - began;
    System.out.printf(
        Locale.ROOT,
        "%s: %.1f ns per byte (%.2f s for %d bytes)%n",
        String.join(" ", words),
        nanos / file.length(),
        nanos / 1e9,
        file.length());
  }
}
