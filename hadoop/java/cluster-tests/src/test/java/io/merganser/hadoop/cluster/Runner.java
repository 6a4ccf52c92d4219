package io.merganser.hadoop.cluster;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.fs.CommonConfigurationKeysPublic;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.MRConfig;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.server.jobtracker.JTConfig;

/**
 * Runs {@link Shape}s, and makes the output of stock Hadoop for each: Hadoop's local runner runs
 * its map tasks, merges and reduce tasks in this JVM, on the same input.
 */
final class Runner implements AutoCloseable {
  private final Path folder;
  private final AtomicInteger jobs = new AtomicInteger();
  private final Map<String, Object> locks = new ConcurrentHashMap<>();
  private final Map<String, Map<String, String>> expected = new ConcurrentHashMap<>();

  Runner(Path folder) {
    this.folder = folder;
  }

  /** A job that was prepared, and the folder that it will write. */
  record Prepared(Job job, Path output) {}

  /** A job of that shape with those settings. The input of a shape is written only once. */
  Prepared prepare(Shape shape, JobConf conf) throws IOException {
    Path output = folder.resolve("out-" + jobs.incrementAndGet());
    Job job = Job.getInstance(conf, shape.name());
    FileInputFormat.addInputPath(job, hadoop(input(shape)));
    FileOutputFormat.setOutputPath(job, hadoop(output));
    shape.setup().configure(job);
    return new Prepared(job, output);
  }

  private Path input(Shape shape) throws IOException {
    synchronized (locks.computeIfAbsent(shape.name(), name -> new Object())) {
      Path input = folder.resolve("in " + shape.name());
      if (!Files.exists(input)) {
        Files.createDirectories(input);
        shape.input().write(input);
      }
      return input;
    }
  }

  /** The digests of stock Hadoop's output. */
  Map<String, String> expected(Shape shape) throws Exception {
    Path input = input(shape);
    synchronized (locks.get(shape.name())) {
      Map<String, String> known = expected.get(shape.name());
      if (known == null) {
        Prepared stock = prepare(shape, localRunner(folder.resolve("local-runner")));
        stock.job().getConfiguration().setInt(MRJobConfig.IO_SORT_MB, 4);
        // A map that waits for a gate finds it open.
        stock.job().getConfiguration().set(Jobs.Gated.GATE, folder.toString());
        if (!stock.job().waitForCompletion(false)) {
          throw new IOException("Hadoop's local runner failed on " + shape + " of " + input);
        }
        known = Output.digests(stock.output());
        expected.put(shape.name(), known);
      }
      return known;
    }
  }

  /** Settings for Hadoop's local runner. */
  static JobConf localRunner(Path folder) {
    JobConf conf = new JobConf();
    conf.set(CommonConfigurationKeysPublic.FS_DEFAULT_NAME_KEY, "file:///");
    conf.set(MRConfig.FRAMEWORK_NAME, MRConfig.LOCAL_FRAMEWORK_NAME);
    conf.set(MRConfig.LOCAL_DIR, folder.resolve("local").toString());
    conf.set("hadoop.tmp.dir", folder.resolve("tmp").toString());
    conf.set(JTConfig.JT_STAGING_AREA_ROOT, folder.resolve("staging").toString());
    conf.setInt(MRJobConfig.IO_SORT_MB, 4);
    // By default the end of a job is checked only every five seconds.
    conf.setInt(Job.PROGRESS_MONITOR_POLL_INTERVAL_KEY, 20);
    conf.setInt(Job.COMPLETION_POLL_INTERVAL_KEY, 20);
    return conf;
  }

  /** Removes inputs and outputs. */
  @Override
  public void close() throws IOException {
    for (String name : locks.keySet()) {
      ClusterUnderTest.delete(folder.resolve("in " + name));
    }
    for (int i = 1; i <= jobs.get(); i++) {
      ClusterUnderTest.delete(folder.resolve("out-" + i));
    }
    ClusterUnderTest.delete(folder.resolve("local-runner"));
  }

  static org.apache.hadoop.fs.Path hadoop(Path path) {
    return new org.apache.hadoop.fs.Path(path.toUri());
  }
}
