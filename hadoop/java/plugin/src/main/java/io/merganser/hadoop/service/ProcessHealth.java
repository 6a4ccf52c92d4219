package io.merganser.hadoop.service;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Decides whether a merge may use the merge process.
 *
 * <p>After a failure the process rests for a second, after the next one for two seconds, and so on
 * up to half a minute. Meanwhile it costs a fetch one comparison. After the rest one merge tries
 * the process, and all others run in Java until the result of that one is known.
 */
final class ProcessHealth {
  private static final Logger LOG = LoggerFactory.getLogger(ProcessHealth.class);

  private static final long REST_NANOS_FIRST = TimeUnit.SECONDS.toNanos(1);
  private static final int REST_DOUBLINGS_MAX = 5;

  private final Path socket;
  private final LongSupplier clock;

  /** Whether the process rests; the other three fields count only then. */
  private volatile boolean resting;

  private volatile long restUntil;
  private int failures;
  private final AtomicBoolean trying = new AtomicBoolean();

  /**
   * @param socket the socket of the process, for messages
   * @param clock nanoseconds, which never decrease
   */
  ProcessHealth(Path socket, LongSupplier clock) {
    this.socket = socket;
    this.clock = clock;
  }

  /** The permission of one merge to use the process. Used by one thread at a time. */
  final class Permit {
    /** Whether this merge tries the process for all others. */
    private boolean trial;

    private Permit(boolean trial) {
      this.trial = trial;
    }

    /** Ends the trial, if it was one: the next merge may try. */
    void end() {
      if (trial) {
        trial = false;
        trying.set(false);
      }
    }
  }

  /** Returns a permit, unless the process rests. */
  Optional<Permit> permit() {
    boolean trial = resting;
    if (trial && (clock.getAsLong() - restUntil < 0 || !trying.compareAndSet(false, true))) {
      return Optional.empty();
    }
    return Optional.of(new Permit(trial));
  }

  /** Lets the process rest, since one of its merges failed. */
  synchronized void failed(IOException reason) {
    long rest = REST_NANOS_FIRST << Math.min(failures, REST_DOUBLINGS_MAX);
    failures++;
    restUntil = clock.getAsLong() + rest;
    if (!resting) {
      LOG.warn(
          "The merge process at {} failed: {}. Merges run in Java until it answers again",
          socket,
          reason.getMessage());
    }
    resting = true;
  }

  /** Ends the rest, since the process has answered. */
  synchronized void answered() {
    if (resting) {
      LOG.info("The merge process at {} answers again", socket);
    }
    failures = 0;
    resting = false;
  }
}
