package io.merganser.hadoop.service;

import io.netty.buffer.ByteBufAllocator;
import java.util.concurrent.TimeUnit;

/**
 * One fetch from the moment it asks to be let in until its last deferred map output is sent: the
 * grant, and the one map output that is merged under it. A fetch of many map outputs is let in
 * once, with the memory of the largest.
 *
 * <p>While others wait, a batch whose reducer took nothing for a while gives its grant back: the
 * merge is closed, what it had made ahead is dropped, and the offset is kept. When the reducer
 * reads again the batch asks again, ahead of all new ones, and merges from that offset. Since that
 * repeats work, the batch waits twice as long the next time, up to a minute. Where nobody waits it
 * is a minute from the start: open files and the merge process's patience are no reducer's for
 * ever.
 *
 * <p>All state of a batch and of its streams is guarded by the batch's monitor; the admission is
 * never called with it held.
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

  /** Asks to be let in; the answer comes to {@code granted} or {@code turnedAway}. */
  void enter(String reducer) {
    entered(service.admission().ask(reducer, bytes, holder));
  }

  /**
   * Opens the next map output; the one before has been sent or closed.
   *
   * @param resume called by any thread when bytes are there after none were
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

  /** Gives everything back, once a merge that still runs has seen that it is not wanted. */
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

  /** What the merge under this grant may take, for so many segments. */
  long mergeMemory(int segments) {
    return service.mergeMemory(bytes, segments);
  }

  /** The reducer took something; called with the monitor held. */
  void moved() {
    lastMoveNanos = service.now();
  }

  /**
   * Runs the stream's merge: at once under the grant, or when there is one again. Called without
   * the monitor.
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

  /** Gives back what nobody uses any more. Called without the monitor. */
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

  /** A grant came after the batch was closed. */
  private void abandoned() {
    synchronized (this) {
      if (current != null) {
        current.stopped();
      }
    }
    settle();
  }
}
