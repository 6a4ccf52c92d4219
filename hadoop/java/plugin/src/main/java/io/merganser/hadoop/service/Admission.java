package io.merganser.hadoop.service;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Admits fetches to the merges of a node, within a number of merges and bytes of memory.
 *
 * <pre>
 *             fits, none before it
 *   ask ------------------------------------> granted --release--> (next in line)
 *    |                                          ^
 *    +--> waiting, in order of the first ask ---+
 *            |
 *            +--> turned away: after its patience, or if the line is full;
 *                 the reducer keeps the time of its first ask
 * </pre>
 *
 * <p>Four rules keep it fair and free of deadlocks:
 *
 * <ul>
 *   <li>A fetch that waits holds nothing, so fetches with a grant can always finish. A fetch that
 *       lost its grant in the middle of an answer, since its reducer did not read, comes before all
 *       new ones.
 *   <li>No fetch overtakes the first in line, however small it is. The first in line is not turned
 *       away for a minute, so a fetch that needs all memory gets it when those before it are done.
 *   <li>A fetch that was turned away comes back with the time of its first ask, so it comes before
 *       later ones.
 *   <li>If nothing is granted, the first in line is admitted even if it asks for more than there
 *       is.
 * </ul>
 */
final class Admission {
  /** How long the first in line may wait: well below the read timeout of a stock reducer, 180 s. */
  private static final long FIRST_PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(60);

  /** How long the time of the first ask is kept for a reducer that was turned away. */
  private static final long TICKET_NANOS = TimeUnit.MINUTES.toNanos(5);

  /** The most reducers for which that time is kept; about 100 bytes each. */
  private static final int TICKETS_MAX = 4096;

  private final long memoryBytes;
  private final int mergesMax;
  private final int lineMax;
  private final long patienceNanos;
  private final LongSupplier clock;

  private final TreeSet<Ask> line =
      new TreeSet<>(
          Comparator.comparing((Ask ask) -> ask.key != null)
              .thenComparingLong(ask -> ask.firstNanos)
              .thenComparingLong(ask -> ask.number));
  private final Map<String, Long> tickets = new LinkedHashMap<>();
  private final Set<Grant> grants = new HashSet<>();
  private long usedBytes;
  private long asks;
  private boolean closed;

  /**
   * @param memoryBytes the memory of all grants together
   * @param mergesMax the most grants at once
   * @param patienceNanos the time after which a fetch that is not the first in line is turned away
   * @param clock nanoseconds, which never decrease
   */
  Admission(long memoryBytes, int mergesMax, long patienceNanos, LongSupplier clock) {
    this.memoryBytes = memoryBytes;
    this.mergesMax = mergesMax;
    this.lineMax = 2 * mergesMax;
    this.patienceNanos = patienceNanos;
    this.clock = clock;
  }

  /** Memory and a place that were granted. */
  final class Grant {
    private final long bytes;
    private final Holder holder;

    private Grant(long bytes, Holder holder) {
      this.bytes = bytes;
      this.holder = holder;
    }

    /** The bytes that the holder may take. */
    long bytes() {
      return bytes;
    }

    /** Gives the grant back; further calls have no effect. */
    void release() {
      List<Runnable> calls = new ArrayList<>();
      synchronized (Admission.this) {
        if (grants.remove(this)) {
          usedBytes -= bytes;
          letIn(calls);
        }
      }
      calls.forEach(Runnable::run);
    }
  }

  /** A fetch that asks. Its methods are called without a lock, on any thread. */
  interface Holder {
    /** The fetch may begin. */
    void granted(Grant grant);

    /** The fetch should come again later. Never called for one in the middle of an answer. */
    void turnedAway();

    /**
     * Called now and then. If the reducer has not read for long, the holder gives its grant back.
     *
     * @param othersWait whether other fetches wait for a grant
     */
    void giveBackIfIdle(boolean othersWait);
  }

  /** One fetch in line. */
  final class Ask {
    private final String key;
    private final long bytes;
    private final long firstNanos;
    private final long sinceNanos;
    private final long number;
    private final Holder holder;

    private Ask(
        String key, long bytes, long firstNanos, long sinceNanos, long number, Holder holder) {
      this.key = key;
      this.bytes = bytes;
      this.firstNanos = firstNanos;
      this.sinceNanos = sinceNanos;
      this.number = number;
      this.holder = holder;
    }

    /** Leaves the line. If the grant was already made, it still arrives. */
    void cancel() {
      List<Runnable> calls = new ArrayList<>();
      synchronized (Admission.this) {
        if (line.remove(this)) {
          letIn(calls);
        }
      }
      calls.forEach(Runnable::run);
    }
  }

  /**
   * Asks for a new fetch. Either {@code granted} or {@code turnedAway} is called, perhaps before
   * this returns, unless the ask is cancelled.
   *
   * @param key names the reducer, so that the time of its first ask is kept if it is turned away
   */
  Ask ask(String key, long bytes, Holder holder) {
    return enter(key, bytes, holder);
  }

  /** Asks again for a fetch in the middle of its answer, which is never turned away. */
  Ask askAgain(long bytes, Holder holder) {
    return enter(null, bytes, holder);
  }

  private Ask enter(String key, long bytes, Holder holder) {
    List<Runnable> calls = new ArrayList<>();
    Ask ask;
    boolean waits;
    synchronized (this) {
      long now = clock.getAsLong();
      long first = key == null ? now : ticket(key, now);
      ask = new Ask(key, bytes, first, now, asks++, holder);
      line.add(ask);
      if (closed && key != null) {
        turnAway(ask, calls);
      }
      letIn(calls);
      if (line.size() > lineMax && line.last().key != null) {
        turnAway(line.last(), calls);
      }
      waits = line.contains(ask);
    }
    calls.forEach(Runnable::run);
    if (waits) {
      reclaim(true);
    }
    return ask;
  }

  /** Turns away fetches whose patience is over, and asks idle holders to give grants back. */
  void tick() {
    List<Runnable> calls = new ArrayList<>();
    boolean waits;
    synchronized (this) {
      long now = clock.getAsLong();
      List<Ask> late = new ArrayList<>();
      boolean first = true;
      for (Ask ask : line) {
        long patience = first ? Math.max(FIRST_PATIENCE_NANOS, patienceNanos) : patienceNanos;
        if (ask.key != null) {
          if (now - ask.sinceNanos >= patience) {
            late.add(ask);
          }
          first = false;
        }
      }
      late.forEach(ask -> turnAway(ask, calls));
      letIn(calls);
      waits = !line.isEmpty();
    }
    calls.forEach(Runnable::run);
    reclaim(waits);
  }

  /** From now on, turns all new fetches away. */
  void close() {
    List<Runnable> calls = new ArrayList<>();
    synchronized (this) {
      closed = true;
      for (Ask ask : new ArrayList<>(line)) {
        if (ask.key != null) {
          turnAway(ask, calls);
        }
      }
    }
    calls.forEach(Runnable::run);
  }

  /** The bytes that are granted now. */
  synchronized long usedBytes() {
    return usedBytes;
  }

  /** The number of grants now. */
  synchronized int granted() {
    return grants.size();
  }

  /** The number of fetches in line now. */
  synchronized int waiting() {
    return line.size();
  }

  private void reclaim(boolean othersWait) {
    List<Grant> holders;
    synchronized (this) {
      holders = new ArrayList<>(grants);
    }
    holders.forEach(grant -> grant.holder.giveBackIfIdle(othersWait));
  }

  private long ticket(String key, long now) {
    Long first = tickets.get(key);
    if (first != null && now - first < TICKET_NANOS) {
      return first;
    }
    tickets.remove(key);
    tickets.put(key, now);
    if (tickets.size() > TICKETS_MAX) {
      Iterator<String> oldest = tickets.keySet().iterator();
      oldest.next();
      oldest.remove();
    }
    return now;
  }

  private void turnAway(Ask ask, List<Runnable> calls) {
    line.remove(ask);
    calls.add(ask.holder::turnedAway);
  }

  private void letIn(List<Runnable> calls) {
    while (!line.isEmpty()) {
      Ask first = line.first();
      boolean fits = usedBytes + first.bytes <= memoryBytes || grants.isEmpty();
      if (grants.size() >= mergesMax || !fits) {
        return;
      }
      line.remove(first);
      if (first.key != null) {
        tickets.remove(first.key);
      }
      Grant grant = new Grant(Math.min(first.bytes, memoryBytes), first.holder);
      grants.add(grant);
      usedBytes += grant.bytes;
      calls.add(() -> first.holder.granted(grant));
    }
  }
}
