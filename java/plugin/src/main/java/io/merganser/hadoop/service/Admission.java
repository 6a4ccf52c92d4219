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
 * Lets fetches into the merges of a node: so many at once, in so many bytes of memory.
 *
 * <pre>
 *             fits, nobody before it
 *   ask ------------------------------------> granted --release--> (next in line)
 *    |                                          ^
 *    +--> waiting, in order of the first ask ---+
 *            |
 *            +--> turned away: after its patience, or when the line is full;
 *                 the reducer keeps its place by the time of its first ask
 * </pre>
 *
 * <p>Four rules keep it fair and free of deadlocks:
 *
 * <ul>
 *   <li>Who waits holds nothing, so holders always get on. A fetch that lost its grant in the
 *       middle of an answer, since its reducer did not read, comes before all new ones.
 *   <li>Nobody overtakes the first in line, however small. The first in line is not turned away for
 *       a minute, so that a fetch which needs all memory gets it once those before it are done.
 *   <li>A fetch that was turned away comes back with the time of its first ask, and so goes before
 *       those who came later.
 *   <li>With nothing granted, the first in line is let in, if it asks for more than there is too.
 * </ul>
 */
final class Admission {
  /** How long the first in line may wait: well below the read timeout of a stock reducer, 180 s. */
  private static final long FIRST_PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(60);

  /** How long a place in line is kept for a reducer that was turned away. */
  private static final long TICKET_NANOS = TimeUnit.MINUTES.toNanos(5);

  /** Places in line that are remembered; about 100 bytes each. */
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
   * @param memoryBytes what all grants together may take
   * @param mergesMax most grants at once
   * @param patienceNanos after which a fetch that is not the first in line is turned away
   * @param clock nanoseconds, only ever growing
   */
  Admission(long memoryBytes, int mergesMax, long patienceNanos, LongSupplier clock) {
    this.memoryBytes = memoryBytes;
    this.mergesMax = mergesMax;
    this.lineMax = 2 * mergesMax;
    this.patienceNanos = patienceNanos;
    this.clock = clock;
  }

  /** What is granted, and how to give it back. */
  final class Grant {
    private final long bytes;
    private final Holder holder;

    private Grant(long bytes, Holder holder) {
      this.bytes = bytes;
      this.holder = holder;
    }

    /** Bytes that the holder may take. */
    long bytes() {
      return bytes;
    }

    /** Gives it back; once only counts. */
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

  /** Who asks. Its methods are called with no lock held, on any thread. */
  interface Holder {
    /** It may begin. */
    void granted(Grant grant);

    /** It may not, and should come again later. Never called for one in the middle of an answer. */
    void turnedAway();

    /**
     * Called now and then: a holder whose reducer has not read for long gives its grant back.
     *
     * @param othersWait whether somebody could use it
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

    /** Leaves the line; a grant that was made already still arrives. */
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
   * Asks for a new fetch. Exactly one of {@code granted} and {@code turnedAway} is called, perhaps
   * before this returns, unless the ask is cancelled.
   *
   * @param key names the reducer, so that it keeps its place when it is turned away
   */
  Ask ask(String key, long bytes, Holder holder) {
    return enter(key, bytes, holder);
  }

  /** Asks again for a fetch in the middle of its answer: it is never turned away. */
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

  /** Turns away those whose patience is over, and asks idle holders to make room. */
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

  /** Turns all new fetches away from now on. */
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

  /** Bytes granted now. */
  synchronized long usedBytes() {
    return usedBytes;
  }

  /** Grants now. */
  synchronized int granted() {
    return grants.size();
  }

  /** Fetches in line now. */
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
