package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.defer.DeferRules;
import io.merganser.workloads.InvertedIndex;
import io.merganser.workloads.RepartitionJoin;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.Cluster;
import org.apache.hadoop.mapreduce.Counters;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.JobStatus;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** The benchmark jobs that Hadoop's examples lack, with composite keys of texts. */
class WorkloadsTest {
  private static Path folder;
  private static ClusterUnderTest cluster;

  @BeforeAll
  static void start() throws Exception {
    folder = ClusterUnderTest.folder("workloads");
    cluster = new ClusterUnderTest(folder.resolve("cluster"));
    cluster.addNode(Node.Kind.best());
  }

  @AfterAll
  static void stop() throws Exception {
    try {
      Leaks.assertNone(cluster);
    } finally {
      cluster.close();
    }
  }

  @Test
  @Execution(ExecutionMode.CONCURRENT)
  void repartitionJoin() throws Exception {
    Path users = folder.resolve("users");
    Path visits = folder.resolve("visits");
    Input.lines(1, 20_000, (random, n) -> "user" + n * 7 % 20_000 + "\tname" + words(random, 8))
        .write(users);
    Input.lines(
            2, 25_000, (random, n) -> "user" + random.nextInt(22_000) + "\t" + n + words(random, 8))
        .write(visits);
    check("repartition join", RepartitionJoin::new, users, visits);
  }

  @Test
  @Execution(ExecutionMode.CONCURRENT)
  void invertedIndex() throws Exception {
    Path pages = folder.resolve("pages");
    Input.lines(2, 3_000, (random, n) -> "page" + n + "\t" + words(random, 30)).write(pages);
    check("inverted index", InvertedIndex::new, pages);
  }

  private static void check(String name, Supplier<Tool> job, Path... inputs) throws Exception {
    Path stock = folder.resolve(name + " stock");
    assertEquals(
        0,
        ToolRunner.run(
            Runner.localRunner(folder.resolve(name.replace(' ', '-'))),
            job.get(),
            args(inputs, stock)));

    Path active = folder.resolve(name + " active");
    JobConf conf = cluster.activeJob();
    conf.setInt(MRJobConfig.NUM_REDUCES, 2);
    assertEquals(0, ToolRunner.run(conf, job.get(), args(inputs, active)));
    Outcome outcome = Outcome.of(job(conf, name));
    // The order of two visits of one user depends on the order of fetches.
    assertEquals(sorted(stock), sorted(active));
    assertEquals(0, outcome.failedFetches());
    int deferred = 0;
    for (Counters map : outcome.maps()) {
      if (MapOutputs.spilledOften(map)) {
        MapOutputs.assertWrittenOnce(map, conf);
        deferred++;
      }
    }
    assertTrue(deferred > 0, Outcome.group(outcome.counters(), DeferRules.COUNTERS));
  }

  private static String[] args(Path[] inputs, Path output) {
    return Stream.concat(Stream.of(inputs), Stream.of(output))
        .map(Path::toString)
        .toArray(String[]::new);
  }

  private static List<String> sorted(Path output) throws Exception {
    return Output.lines(output).stream().sorted().toList();
  }

  /** The job of that name, which the tool has waited for. */
  private static Job job(JobConf conf, String name) throws Exception {
    Cluster client = new Cluster(conf);
    for (JobStatus status : client.getAllJobStatuses()) {
      if (status.getJobName().equals(name)) {
        return client.getJob(status.getJobID());
      }
    }
    throw new IllegalStateException("no job " + name);
  }

  private static String words(java.util.Random random, int count) {
    StringBuilder line = new StringBuilder();
    for (int i = 0; i < count; i++) {
      line.append(' ').append(Input.word(random));
    }
    return line.toString();
  }
}
