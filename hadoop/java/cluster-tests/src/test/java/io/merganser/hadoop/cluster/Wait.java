package io.merganser.hadoop.cluster;

import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Waits for events in another thread or process. */
final class Wait {
  private Wait() {}

  /** Returns when {@code condition} holds, which is checked ten times per second. */
  static void until(String what, int seconds, Callable<Boolean> condition) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
    while (!condition.call()) {
      if (System.nanoTime() > end) {
        throw new TimeoutException("waited " + seconds + " s for: " + what);
      }
      Thread.sleep(100);
    }
  }
}
