package io.merganser.hadoop.node;

import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.counter.OwnCounters;
import java.io.IOException;
import java.nio.file.Path;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.NodeMapOutput;
import org.apache.hadoop.mapred.ReceivedSpills;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormatCounter;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Maps one split on the node where its blocks are. Either the task has the whole output of the map
 * and all its counters afterwards, or nothing has happened and the map runs on the host.
 */
final class NodeMap {
  /** Counts maps that ran on the node. */
  static final String ON_NODE = "MAPS_ON_NODE";

  /** Counts bytes of blocks and checksums that the node read. */
  static final String BYTES_READ = "NODE_BYTES_READ";

  /** Counts bytes of spills that the node sent to tasks. */
  static final String BYTES_SENT = "NODE_BYTES_SENT";

  /** Counts milliseconds of processor time that maps took on the node. */
  static final String CPU_MILLIS = "NODE_CPU_MILLISECONDS";

  private static final Logger LOG = LoggerFactory.getLogger(NodeMap.class);

  private static final long NANOS_PER_MILLI = 1_000_000;

  /** The least that is asked for by default; a map with less spills too often. */
  private static final long MEMORY_BYTES_MIN = 16 << 20;

  private static final long MEMORY_BYTES_MAX = 4L << 30;
  private static final int PATIENCE_MILLIS_MAX = 30_000;

  private final TaskAttemptID attempt;
  private final TaskCounters counters;
  private final int reducers;
  private final Class<?> inputFormat;

  /**
   * @param reducers the job's reducers; without any, a task has no collector
   * @param inputFormat the job's own input format
   */
  NodeMap(TaskAttemptID attempt, TaskCounters counters, int reducers, Class<?> inputFormat) {
    this.attempt = attempt;
    this.counters = counters;
    this.reducers = reducers;
    this.inputFormat = inputFormat;
  }

  /**
   * Maps a split.
   *
   * @return whether the map is done; if not, the reason is counted and logged
   */
  boolean run(FileSlice split) {
    try {
      if (reducers == 0) {
        throw new OnHostException(HostReason.NO_REDUCERS, "the job has no reducers");
      }
      NodeMapOutput<?, ?> output =
          NodeMapOutput.of(attempt)
              .orElseThrow(
                  () ->
                      new OnHostException(
                          HostReason.NO_COLLECTOR,
                          MRJobConfig.MAP_OUTPUT_COLLECTOR_CLASS_ATTR
                              + " doesn't begin with "
                              + NodeMapOutput.class.getName()));
      if (output.hasRecords()) {
        throw new OnHostException(
            HostReason.RECORDS_BEFORE, "the mapper wrote records before it read any");
      }
      run(split, output);
      return true;
    } catch (OnHostException e) {
      refuse(e.reason(), e.getMessage());
      return false;
    }
  }

  /** Counts and logs that a map runs on the host. */
  void refuse(HostReason reason, String detail) {
    LOG.info("{}: mapped on the host, {}: {}", attempt, reason, detail);
    own(reason.counter(), 1);
  }

  /** Adds to a counter of this plugin. */
  private void own(String name, long amount) {
    OwnCounters.add(
        (group, counter, by) -> counters.get(group, counter).increment(by), name, amount);
  }

  private void run(FileSlice split, NodeMapOutput<?, ?> output) throws OnHostException {
    JobConf job = output.job();
    NodeRules rules = new NodeRules(job);
    NodeProgram program = rules.program(attempt, inputFormat);
    SplitBlocks blocks = SplitBlocks.of(split, job);
    LineTail tail = LineTail.of(split, blocks.fileLength(), rules.delimiter(), job);
    // The tail was found by the file's name. Another file may have this name since the blocks were
    // found; then they are different ones now.
    if (tail.bytes().length > 0 && !SplitBlocks.of(split, job).equals(blocks)) {
      throw new OnHostException(
          HostReason.HDFS_FAILED, split.path() + " was changed or replaced meanwhile");
    }
    NodeRequest.Map request =
        new NodeRequest.Map(
            attempt.toString(),
            program,
            split,
            blocks,
            tail,
            rules.delimiter(),
            rules.lineMax(),
            job.getNumReduceTasks(),
            memoryBytes(job),
            Math.min(
                PATIENCE_MILLIS_MAX,
                Math.max(0, job.getInt(Keys.NODE_PATIENCE, Keys.DEFAULT_NODE_PATIENCE))));
    NodeCounts counts = receive(request, output);
    count(counts, split);
    LOG.info("{}: mapped {} on the node as {}: {}", attempt, split, program.name(), counts);
  }

  private static NodeCounts receive(NodeRequest.Map request, NodeMapOutput<?, ?> output)
      throws OnHostException {
    JobConf job = output.job();
    Path socket = Path.of(job.getTrimmed(Keys.NODE_SOCKET));
    // A node says nothing while a map waits for a place.
    long timeout =
        request.patienceMillis()
            + Math.max(1, job.getLong(Keys.NODE_TIMEOUT, Keys.DEFAULT_NODE_TIMEOUT));
    try (NodeConversation node =
            new NodeConversation(socket, timeout, watcher(output, request.split()));
        ReceivedSpills spills = output.receive()) {
      NodeCounts counts = node.map(request, spills);
      output.adopt(spills);
      return counts;
    } catch (IOException e) {
      throw new OnHostException(HostReason.PROTOCOL, e.getMessage(), e);
    }
  }

  private static NodeConversation.Watcher watcher(NodeMapOutput<?, ?> output, FileSlice split) {
    return new NodeConversation.Watcher() {
      @Override
      public void alive() {
        output.reporter().progress();
      }

      @Override
      public void done(long splitBytes) {
        output.mapProgress(Math.max(0, Math.min(1, (float) splitBytes / split.length())));
      }
    };
  }

  private static long memoryBytes(JobConf job) {
    long named = job.getLong(Keys.NODE_MEMORY, Keys.DEFAULT_NODE_MEMORY);
    long sortMb = job.getInt(MRJobConfig.IO_SORT_MB, MRJobConfig.DEFAULT_IO_SORT_MB);
    long wanted = named > 0 ? named : Math.max(MEMORY_BYTES_MIN, sortMb << 20);
    return Math.min(MEMORY_BYTES_MAX, wanted);
  }

  /** Adds what stock Hadoop would have counted, and the node's own counts. */
  private void count(NodeCounts counts, FileSlice split) {
    counters.get(TaskCounter.MAP_INPUT_RECORDS).increment(counts.inputRecords());
    // Hadoop adds what the task itself read, which is the tail.
    counters.get(FileInputFormatCounter.BYTES_READ).increment(split.length());
    counters.get(TaskCounter.MAP_OUTPUT_RECORDS).increment(counts.outputRecords());
    counters.get(TaskCounter.MAP_OUTPUT_BYTES).increment(counts.outputBytes());
    counters.get(TaskCounter.SPILLED_RECORDS).increment(counts.spilledRecords());
    counters.get(TaskCounter.COMBINE_INPUT_RECORDS).increment(counts.combineInput());
    counters.get(TaskCounter.COMBINE_OUTPUT_RECORDS).increment(counts.combineOutput());
    own(ON_NODE, 1);
    own(BYTES_READ, counts.readBytes());
    own(BYTES_SENT, counts.spillBytes());
    own(CPU_MILLIS, counts.cpuNanos() / NANOS_PER_MILLI);
  }
}
