package io.merganser.hadoop.cluster;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.mapreduce.Counter;
import org.apache.hadoop.mapreduce.Counters;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.TaskCompletionEvent;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.apache.hadoop.mapreduce.TaskReport;
import org.apache.hadoop.mapreduce.TaskType;

/**
 * The end of a job, from its history.
 *
 * @param succeeded whether the job succeeded
 * @param why the reason if it did not, and the messages of failed attempts
 * @param counters of the whole job
 * @param maps counters of the attempt of each map task that succeeded
 * @param reduces the same for reduce tasks
 * @param attempts the end of each attempt of each task, in order of time
 */
record Outcome(
    boolean succeeded,
    String why,
    Counters counters,
    List<Counters> maps,
    List<Counters> reduces,
    List<TaskCompletionEvent> attempts) {

  /** Runs a job to its end and returns its outcome. */
  static Outcome of(Job job) throws Exception {
    if (job.getJobID() == null) {
      job.submit();
    }
    boolean succeeded = job.waitForCompletion(false);
    List<TaskCompletionEvent> attempts = new ArrayList<>();
    while (true) {
      TaskCompletionEvent[] more = job.getTaskCompletionEvents(attempts.size(), 1000);
      if (more.length == 0) {
        break;
      }
      attempts.addAll(List.of(more));
    }
    Outcome outcome =
        new Outcome(
            succeeded,
            why(job, attempts),
            job.getCounters(),
            tasks(job, TaskType.MAP),
            tasks(job, TaskType.REDUCE),
            attempts);
    // The master has finished, but would wait five seconds for late clients.
    Containers.master(job.getJobID()).ifPresent(ProcessHandle::destroyForcibly);
    return outcome;
  }

  private static String why(Job job, List<TaskCompletionEvent> attempts) throws Exception {
    StringBuilder why = new StringBuilder(String.valueOf(job.getStatus().getFailureInfo()));
    for (TaskCompletionEvent attempt : attempts) {
      if (attempt.getStatus() != TaskCompletionEvent.Status.SUCCEEDED) {
        why.append('\n').append(attempt.getTaskAttemptId()).append(": ");
        why.append(String.join("\n", job.getTaskDiagnostics(attempt.getTaskAttemptId())));
      }
    }
    return why.toString();
  }

  private static List<Counters> tasks(Job job, TaskType type) throws Exception {
    List<Counters> all = new ArrayList<>();
    for (TaskReport report : job.getTaskReports(type)) {
      all.add(report.getTaskCounters());
    }
    return all;
  }

  long counter(Enum<?> name) {
    return counters.findCounter(name).getValue();
  }

  long counter(String group, String name) {
    return counters.findCounter(group, name).getValue();
  }

  /** The fetches that failed and were tried again. */
  long failedFetches() {
    return counter(TaskCounter.FAILED_SHUFFLE);
  }

  /** All counters of one group as text; empty for an unknown group. */
  static String group(Counters counters, String group) {
    StringBuilder text = new StringBuilder();
    for (Counter counter : counters.getGroup(group)) {
      text.append(counter.getName()).append('=').append(counter.getValue()).append(' ');
    }
    return text.toString();
  }
}
