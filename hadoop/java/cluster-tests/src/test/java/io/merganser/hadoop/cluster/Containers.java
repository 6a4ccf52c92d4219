package io.merganser.hadoop.cluster;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;
import org.apache.hadoop.mapreduce.JobID;

/** The JVMs in the containers of NodeManagers. */
final class Containers {
  private Containers() {}

  /** The JVM of a task attempt, while it runs. */
  static Optional<ProcessHandle> task(String attempt) {
    return jvm(
        words -> words.contains("org.apache.hadoop.mapred.YarnChild") && words.contains(attempt));
  }

  /** The JVM of a job's application master, while it runs. */
  static Optional<ProcessHandle> master(JobID job) {
    String application = job.toString().replace("job_", "/application_") + "/";
    return jvm(
        words ->
            words.contains("org.apache.hadoop.mapreduce.v2.app.MRAppMaster")
                && words.stream().anyMatch(word -> word.contains(application)));
  }

  private static Optional<ProcessHandle> jvm(Predicate<List<String>> commandLine) {
    return ProcessHandle.allProcesses()
        .filter(process -> commandLine.test(words(process.pid())))
        .findFirst();
  }

  private static List<String> words(long pid) {
    try {
      byte[] line = Files.readAllBytes(Path.of("/proc", "" + pid, "cmdline"));
      return List.of(new String(line, StandardCharsets.UTF_8).split("\0"));
    } catch (IOException e) {
      // It has ended since it was listed.
      return List.of();
    }
  }
}
