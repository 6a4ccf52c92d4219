package io.merganser.hadoop.node;

import org.apache.hadoop.mapred.Reporter;
import org.apache.hadoop.mapreduce.Counter;
import org.apache.hadoop.mapreduce.TaskAttemptContext;

/** The counters of a task, in either API of Hadoop. */
interface TaskCounters {
  Counter get(String group, String name);

  Counter get(Enum<?> name);

  static TaskCounters of(TaskAttemptContext context) {
    return new TaskCounters() {
      @Override
      public Counter get(String group, String name) {
        return context.getCounter(group, name);
      }

      @Override
      public Counter get(Enum<?> name) {
        return context.getCounter(name);
      }
    };
  }

  static TaskCounters of(Reporter reporter) {
    return new TaskCounters() {
      @Override
      public Counter get(String group, String name) {
        return reporter.getCounter(group, name);
      }

      @Override
      public Counter get(Enum<?> name) {
        return reporter.getCounter(name);
      }
    };
  }
}
