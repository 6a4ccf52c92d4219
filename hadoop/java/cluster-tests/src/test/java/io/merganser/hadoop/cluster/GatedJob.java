package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskCompletionEvent;

/**
 * A job of {@link Shape#gated}. It stops when all map tasks but the last are done and no reducer
 * has begun, until the test opens its gate.
 */
final class GatedJob {
  private final ClusterUnderTest cluster;
  private final Runner runner;
  private final Shape shape;
  private final Path gate;
  private final Runner.Prepared prepared;
  private List<TaskAttemptID> done = List.of();

  /** Starts the job, and waits for its map tasks. */
  GatedJob(ClusterUnderTest cluster, Runner runner, Shape shape, JobConf conf) throws Exception {
    this.cluster = cluster;
    this.runner = runner;
    this.shape = shape;
    gate = Files.createTempFile(cluster.folder(), "gate", "");
    Files.delete(gate);
    conf.set(Jobs.Gated.GATE, gate.toString());
    prepared = runner.prepare(shape, conf);
    // Stock Hadoop's output is made now, while the map tasks run.
    prepared.job().submit();
    runner.expected(shape);
    int maps = prepared.job().getConfiguration().getInt(Jobs.Gated.MAPS, 0);
    Wait.until(
        "map tasks of " + shape,
        120,
        () -> {
          if (job().isComplete()) {
            throw new IOException("over too early: " + job().getStatus().getFailureInfo());
          }
          done =
              Stream.of(job().getTaskCompletionEvents(0, 1000))
                  .filter(e -> e.getStatus() == TaskCompletionEvent.Status.SUCCEEDED)
                  .map(TaskCompletionEvent::getTaskAttemptId)
                  .toList();
          return done.size() == maps - 1;
        });
  }

  Job job() {
    return prepared.job();
  }

  /** The attempts of map tasks that are done. */
  List<TaskAttemptID> done() {
    return done;
  }

  /** The node that has an attempt's output. */
  Node nodeOf(TaskAttemptID attempt) throws IOException {
    for (Node node : cluster.nodes()) {
      for (Path file : node.jobFiles()) {
        if (file.endsWith(Path.of(attempt.toString(), "file.out"))) {
          return node;
        }
      }
    }
    throw new IOException("no node has the output of " + attempt);
  }

  /** The spills of an attempt that are kept for its deferred merge, by number. */
  List<Path> spills(TaskAttemptID attempt) throws IOException {
    return nodeOf(attempt).jobFiles().stream()
        .filter(file -> file.toString().contains(attempt.toString()))
        .filter(file -> file.getFileName().toString().matches(".*spill_?[0-9]+\\.out"))
        .sorted()
        .toList();
  }

  /** Lets the last map task continue. */
  void open() {
    try {
      Files.createFile(gate);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Opens the gate if it is still closed, and waits for the end of the job. */
  Outcome finish() throws Exception {
    if (!Files.exists(gate)) {
      open();
    }
    return Outcome.of(job());
  }

  /** As {@link #finish}, and the job must write the same as stock Hadoop. */
  Outcome finishRight() throws Exception {
    Outcome outcome = finish();
    assertTrue(outcome.succeeded(), outcome::why);
    assertEquals(runner.expected(shape), Output.digests(prepared.output()));
    return outcome;
  }

  /** The attempts of map tasks other than the first of each. */
  static List<TaskAttemptID> rerun(Outcome outcome) {
    return outcome.attempts().stream()
        .filter(TaskCompletionEvent::isMapTask)
        .map(TaskCompletionEvent::getTaskAttemptId)
        .filter(attempt -> attempt.getId() > 0)
        .toList();
  }
}
