package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.nio.file.Path;
import java.util.List;
import org.apache.hadoop.examples.terasort.TeraGen;
import org.apache.hadoop.examples.terasort.TeraInputFormat;
import org.apache.hadoop.examples.terasort.TeraOutputFormat;
import org.apache.hadoop.examples.terasort.TeraValidate;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Counters;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.util.ToolRunner;
import org.junit.jupiter.api.Test;

/** TeraGen, TeraSort and TeraValidate, of Hadoop's examples. */
class TeraSortTest {
  private static final int ROWS = 60_000;
  private static final String PARTITIONS = "_partition.lst";

  @Test
  void sortsAndKeepsItsChecksum() throws Throwable {
    Path folder = ClusterUnderTest.folder("terasort");
    Path input = folder.resolve("in");
    Path output = folder.resolve("out");
    try (Runner runner = new Runner(folder);
        ClusterUnderTest cluster = new ClusterUnderTest(folder.resolve("cluster"))) {
      var local = Runner.localRunner(folder.resolve("local-runner"));
      assertEquals(
          0, ToolRunner.run(local, new TeraGen(), args(Integer.toString(ROWS), input.toString())));
      cluster.addNode(Node.Kind.best());

      Job job = Job.getInstance(cluster.activeJob(), "TeraSort");
      TeraInputFormat.setInputPaths(job, Runner.hadoop(input));
      TeraOutputFormat.setOutputPath(job, Runner.hadoop(output));
      job.setInputFormatClass(TeraInputFormat.class);
      job.setOutputFormatClass(TeraOutputFormat.class);
      job.setOutputKeyClass(Text.class);
      job.setOutputValueClass(Text.class);
      job.setNumReduceTasks(3);
      // As TeraSort sets it up; its class is not public.
      job.getConfiguration()
          .set(
              MRJobConfig.PARTITIONER_CLASS_ATTR,
              "org.apache.hadoop.examples.terasort.TeraSort$TotalOrderPartitioner");
      var partitions = Runner.hadoop(folder.resolve(PARTITIONS));
      TeraInputFormat.writePartitionFile(job, partitions);
      // With the local file system as default, a relative name is found in the folder of the job.
      job.setWorkingDirectory(Runner.hadoop(folder));
      job.addCacheFile(new URI(partitions + "#" + PARTITIONS));
      Outcome outcome = Outcome.of(job);
      assertTrue(outcome.succeeded(), outcome::why);
      assertEquals(0, outcome.failedFetches());
      for (Counters map : outcome.maps()) {
        MapOutputs.assertWrittenOnce(map, job.getConfiguration());
      }

      assertEquals(checksum(runner, folder, input), checksum(runner, folder, output));
      Leaks.assertNone(cluster);
    }
  }

  /** The report of TeraValidate: the checksum of the rows, and errors in their order. */
  private static List<String> checksum(Runner runner, Path folder, Path rows) throws Exception {
    Path report = folder.resolve("report-" + rows.getFileName());
    var local = Runner.localRunner(folder.resolve("local-runner"));
    int code = ToolRunner.run(local, new TeraValidate(), args(rows.toString(), report.toString()));
    List<String> lines = Output.lines(report);
    if (rows.endsWith("out")) {
      assertEquals(0, code, () -> "TeraValidate: " + lines);
    }
    return lines.stream().filter(line -> line.startsWith("checksum")).toList();
  }

  private static String[] args(String... args) {
    return args;
  }
}
