package org.apache.hadoop.mapred;

import io.merganser.hadoop.capability.Capability;
import io.merganser.hadoop.defer.DeferRules;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapreduce.MRConfig;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.util.Progress;

/** The part of a map task that sorts and spills, in YARN's directories and without YARN. */
final class MapSide {
  /** A record and its partition. */
  record Output(Writable key, Writable value, int partition) {}

  private final List<Path> applications = new ArrayList<>();
  private final JobConf job;
  private final MapTask task;
  private final Task.TaskReporter reporter;
  private ByteBuffer serviceMetaData = ByteBuffer.wrap(Capability.appendTo(ByteBuffer.allocate(4)));

  MapSide(Path dir, String name, int disks, int attempt, JobConf settings) throws IOException {
    job = new JobConf(settings);
    for (int disk = 0; disk < disks; disk++) {
      applications.add(
          Files.createDirectories(
              dir.resolve(name + "-disk" + disk).resolve("usercache/u/appcache/app")));
    }
    job.setStrings(
        MRConfig.LOCAL_DIR, applications.stream().map(Path::toString).toArray(String[]::new));
    job.setClass(MRConfig.TASK_LOCAL_OUTPUT_CLASS, YarnOutputFiles.class, MapOutputFile.class);
    TaskAttemptID id = new TaskAttemptID("1", 2, TaskType.MAP, 3, attempt);
    job.set(MRJobConfig.TASK_ATTEMPT_ID, id.toString());
    Progress sortPhase = new Progress();
    task =
        new MapTask("job.xml", id, 3, null, 1) {
          @Override
          public Progress getSortPhase() {
            return sortPhase;
          }
        };
    task.setConf(job);
    Progress taskProgress = new Progress();
    taskProgress.addPhase("map");
    reporter = task.new TaskReporter(taskProgress, null);
  }

  /** A job with small buffers, so that outputs of some megabytes have some spills. */
  static JobConf settings(Class<?> key, Class<?> value, int partitions) {
    JobConf job = new JobConf(false);
    job.setInt(MRJobConfig.IO_SORT_MB, 1);
    job.setNumReduceTasks(partitions);
    job.setMapOutputKeyClass(key);
    job.setMapOutputValueClass(value);
    job.setLong("merganser.shuffle.defer.min-segment-bytes", 0);
    return job;
  }

  static JobConf textSettings(int partitions) {
    return settings(Text.class, org.apache.hadoop.io.BytesWritable.class, partitions);
  }

  MapSide withService(ByteBuffer metaData) {
    serviceMetaData = metaData;
    return this;
  }

  MapSide runDeferred(Iterable<Output> outputs) throws Exception {
    return run(
        new DeferredMapOutputBuffer<>() {
          @Override
          ByteBuffer serviceMetaData() {
            return serviceMetaData;
          }
        },
        outputs);
  }

  MapSide runStock(Iterable<Output> outputs) throws Exception {
    return run(new MapTask.MapOutputBuffer<>(), outputs);
  }

  MapSide run(MapTask.MapOutputBuffer<Writable, Writable> buffer, Iterable<Output> outputs)
      throws Exception {
    buffer.init(context());
    for (Output output : outputs) {
      buffer.collect(output.key(), output.value(), output.partition());
    }
    buffer.flush();
    buffer.close();
    buffer.spillThread.join(10_000);
    return this;
  }

  MapOutputCollector.Context context() {
    return new MapOutputCollector.Context(task, job, reporter);
  }

  Task.TaskReporter reporter() {
    return reporter;
  }

  ByteBuffer serviceMetaData() {
    return serviceMetaData;
  }

  JobConf job() {
    return job;
  }

  MapTask task() {
    return task;
  }

  Path fileOut() throws IOException {
    return Path.of(task.getMapOutputFile().getOutputFile().toUri().getPath());
  }

  SpillRecord index() throws IOException {
    return new SpillRecord(task.getMapOutputFile().getOutputIndexFile(), job);
  }

  long counter(TaskCounter counter) {
    return reporter.getCounter(counter).getCounter();
  }

  /** Merganser's counters that are not zero. */
  Map<String, Long> decisions() {
    Map<String, Long> counters = new TreeMap<>();
    for (Counters.Counter counter : task.getCounters().getGroup(DeferRules.COUNTERS)) {
      counters.put(counter.getName(), counter.getValue());
    }
    return counters;
  }

  /** The files of the task that aren't directories, by name, with the disk they are on. */
  Map<String, Integer> files() throws IOException {
    Map<String, Integer> files = new TreeMap<>();
    for (int disk = 0; disk < applications.size(); disk++) {
      try (var walk = Files.walk(applications.get(disk))) {
        for (Path file : walk.filter(Files::isRegularFile).toList()) {
          files.put(file.getFileName().toString(), disk);
        }
      }
    }
    return files;
  }
}
