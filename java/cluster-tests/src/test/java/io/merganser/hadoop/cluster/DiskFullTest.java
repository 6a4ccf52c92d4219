package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.defer.DeferRules;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A local dir on a small file system, if this user may mount one. */
class DiskFullTest {
  private Path folder;
  private Path disk;
  private ClusterUnderTest cluster;
  private Runner runner;

  @BeforeEach
  void start() throws Exception {
    folder = ClusterUnderTest.folder("disk-full");
    disk = Files.createDirectories(folder.resolve("disk"));
    Assumptions.assumeTrue(
        run("mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", disk.toString()),
        "mounting a small file system is not allowed here");
    runner = new Runner(folder);
    cluster = new ClusterUnderTest(folder.resolve("cluster"));
  }

  @AfterEach
  void stop() throws Exception {
    if (cluster != null) {
      cluster.close();
      runner.close();
      assertTrue(run("umount", disk.toString()));
    }
  }

  /** Two outputs of 3 MB and their copies fit, as for stock Hadoop; two of 15 MB do not. */
  @Test
  void failsAsStockHadoopAndLeavesNothing() throws Exception {
    cluster.addNode(Node.Kind.best().on(disk));
    Shape tooLarge =
        new Shape(
            "sort of too much", DeferRules.DEFERRED, Shape.sorted(2, 3_700, 4_072), Shape::sort);
    Outcome stock = run(tooLarge, cluster.stockJob());
    Outcome active = run(tooLarge, cluster.activeJob());
    assertFalse(stock.succeeded());
    assertFalse(active.succeeded());
    assertTrue(saysWhy(stock), stock::why);
    assertTrue(saysWhy(active), active::why);
    Leaks.assertNone(cluster);

    ShapeCheck.active(
        cluster, runner, Shape.sort4KiB("sort of little", DeferRules.DEFERRED, 2, job -> {}));
    Leaks.assertNone(cluster);
  }

  private Outcome run(Shape shape, JobConf conf) throws Exception {
    conf.setInt(MRJobConfig.MAP_MAX_ATTEMPTS, 1);
    conf.setInt(MRJobConfig.REDUCE_MAX_ATTEMPTS, 1);
    return Outcome.of(runner.prepare(shape, conf).job());
  }

  private static boolean saysWhy(Outcome outcome) {
    return List.of("No space left on device", "Could not find any valid local directory").stream()
        .anyMatch(outcome.why()::contains);
  }

  private static boolean run(String... command) throws IOException, InterruptedException {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    process.getInputStream().readAllBytes();
    return process.waitFor(10, TimeUnit.SECONDS) && process.exitValue() == 0;
  }
}
