package io.merganser.hadoop.service;

import io.netty.buffer.ByteBufAllocator;
import java.util.concurrent.TimeUnit;

/**
 * One fetch, from its ask for admission until its last deferred map output is sent: the grant, and
 * the one map output that is merged under it. A fetch of many map outputs is admitted once, with
 * the memory of the largest.
 *
 * <p>If other fetches wait, a batch whose reducer read nothing for a while gives its grant back.
 * The merge is closed, the chunks that were made ahead are dropped, and the offset is kept. When
 * the reducer reads again, the batch asks again, before all new ones, and merges from that offset.
 * Since that repeats work, the batch waits twice as long the next time, up to a minute. If no fetch
 * waits, the batch gives its grant back after a minute, since no reducer may keep files and
 * connections open for ever.
 *
 * <p>The monitor of the batch guards all state of the batch and its streams. The admission is never
 * called while the monitor is held.
 */
public final class Batch {
  private static final long STALL_NANOS_MAX = TimeUnit.MINUTES.toNanos(1);

  private final MergeService service;
  private final long bytes;
  private final Admission.Holder holder = new Holder();
  private Runnable granted;
  private Runnable turnedAway;
  private Admission.Ask ask;
  private Admission.Grant grant;
  private MergeStream current;
  private boolean asking = true;
  private boolean closed;
  private long lastMoveNanos;
  private long stallNanos;

  Batch(MergeService service, long bytes, Runnable granted, Runnable turnedAway) {
    this.service = service;
    this.bytes = bytes;
    this.granted = granted;
    this.turnedAway = turnedAway;
    this.stallNanos = service.stallNanos();
    this.lastMoveNanos = service.now();
  }

  /** Asks for admission; {@code granted} or {@code turnedAway} gets the answer. */
  void enter(String reducer) {
    entered(service.admission().ask(reducer, bytes, holder));
  }

  /**
   * Opens the next map output. The one before has been sent or closed.
   *
   * @param resume called by any thread when bytes are there again
   */
  public MergeStream open(
      OutputCatalog.Deferred output, ByteBufAllocator allocator, Runnable resume) {
    MergeStream stream = new MergeStream(service, this, output, allocator, resume);
    synchronized (this) {
      current = stream;
      lastMoveNanos = service.now();
    }
    return stream;
  }

  /** Gives everything back; if a merge still runs, as soon as it has stopped. */
  public void close() {
    MergeStream stream;
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
      stream = current;
    }
    if (stream != null) {
      stream.close();
    }
    settle();
  }

  /** The memory that the merge of {@code segments} segments may take under this grant. */
  long mergeMemory(int segments) {
    return service.mergeMemory(bytes, segments);
  }

  /** Notes that the reducer took a chunk. Called with the monitor held. */
  void moved() {
    lastMoveNanos = service.now();
  }

  /**
   * Runs the merge of a stream: at once if there is a grant, otherwise when there is one again.
   * Called without the monitor.
   */
  void run(MergeStream stream) {
    boolean admitted;
    synchronized (this) {
      if (closed) {
        stream.stopped();
        return;
      }
      admitted = grant != null;
      if (!admitted) {
        asking = true;
        granted = () -> service.produce(stream);
      }
    }
    if (admitted) {
      service.produce(stream);
    } else {
      entered(service.admission().askAgain(bytes, holder));
    }
  }

  /** Gives back the grant and the place in line of a closed batch. Called without the monitor. */
  void settle() {
    Admission.Grant done = null;
    Admission.Ask left = null;
    synchronized (this) {
      if (closed) {
        left = ask;
        ask = null;
        if (current == null || !current.running()) {
          done = grant;
          grant = null;
        }
      }
    }
    if (left != null) {
      left.cancel();
    }
    if (done != null) {
      done.release();
    }
  }

  private void entered(Admission.Ask made) {
    synchronized (this) {
      if (asking) {
        ask = made;
      }
    }
    settle();
  }

  private final class Holder implements Admission.Holder {
    @Override
    public void granted(Admission.Grant got) {
      Runnable go;
      synchronized (Batch.this) {
        asking = false;
        ask = null;
        grant = got;
        lastMoveNanos = service.now();
        go = closed ? null : granted;
      }
      if (go != null) {
        go.run();
      } else {
        abandoned();
      }
    }

    @Override
    public void turnedAway() {
      synchronized (Batch.this) {
        asking = false;
        ask = null;
        if (closed) {
          return;
        }
        closed = true;
      }
      service.metrics().turnedAway.incr();
      turnedAway.run();
    }

    @Override
    public void giveBackIfIdle(boolean othersWait) {
      Admission.Grant given;
      synchronized (Batch.this) {
        long patience = othersWait ? stallNanos : Math.max(stallNanos, STALL_NANOS_MAX);
        if (closed || grant == null || service.now() - lastMoveNanos < patience) {
          return;
        }
        if (current != null && !current.putOff()) {
          return;
        }
        given = grant;
        grant = null;
        stallNanos = Math.max(stallNanos, Math.min(2 * stallNanos, STALL_NANOS_MAX));
      }
      service.metrics().putOff.incr();
      given.release();
    }
  }

  /** Gives back a grant that came after the batch was closed. */
  private void abandoned() {
    synchronized (this) {
      if (current != null) {
        current.stopped();
      }
    }
    settle();
  }
}
