package io.merganser.hadoop.service;

import io.merganser.hadoop.process.ProcessConnection;
import java.io.Closeable;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.function.LongSupplier;

/**
 * The merge process of this node, {@code merganser hadoop serve --shuffle}, as the NodeManager sees
 * it.
 *
 * <pre>
 *   MergeProcess   idle connections, and the merges that may run
 *     ProcessHealth       whether the process may be used, or rests after a failure
 *     ProcessMerge        one merge: its request, and the frames of the answer
 *       MergeRequest        the bytes of the request
 *       ProcessConnection   a Unix socket whose waits are bounded
 * </pre>
 */
final class MergeProcess implements Closeable {
  private final Path socket;
  private final long timeoutNanos;
  private final int idleMax;
  private final ProcessHealth health;

  private final Deque<ProcessConnection> idle = new ArrayDeque<>();
  private boolean closed;

  /**
   * @param socket where the process listens
   * @param timeoutNanos how long it may send nothing before it counts as dead
   * @param idleMax most connections that are kept for the next merges
   * @param clock nanoseconds, which never decrease
   */
  MergeProcess(Path socket, long timeoutNanos, int idleMax, LongSupplier clock) {
    this.socket = socket;
    this.timeoutNanos = timeoutNanos;
    this.idleMax = idleMax;
    this.health = new ProcessHealth(socket, clock);
  }

  /**
   * Returns a merge in the process, unless the process rests. The first read sends the request, and
   * fails if the process can't be reached.
   *
   * @param skip bytes of the merged segment that are not wanted
   * @param memoryBytes the memory that the process may take for the merge
   */
  Optional<MergedBytes> merge(OutputCatalog.Deferred output, long skip, long memoryBytes) {
    return health.permit().map(permit -> new ProcessMerge(this, permit, output, skip, memoryBytes));
  }

  /** Closes the idle connections; those in use are closed with their merges. */
  @Override
  public void close() {
    synchronized (idle) {
      closed = true;
    }
    dropIdle();
  }

  /** The number of idle connections. */
  int idle() {
    synchronized (idle) {
      return idle.size();
    }
  }

  /** Returns an idle connection, or null. */
  ProcessConnection pooled() {
    synchronized (idle) {
      return idle.pollFirst();
    }
  }

  ProcessConnection connect() throws IOException {
    return new ProcessConnection(socket, timeoutNanos);
  }

  /** Keeps a connection for the next merge. */
  void giveBack(ProcessConnection connection) {
    synchronized (idle) {
      if (!closed && idle.size() < idleMax) {
        idle.addFirst(connection);
        return;
      }
    }
    connection.close();
  }

  /** Lets the process rest, since one of its merges failed. */
  void failed(IOException reason) {
    health.failed(reason);
    dropIdle();
  }

  /** Notes that the process has answered. */
  void answered() {
    health.answered();
  }

  private void dropIdle() {
    List<ProcessConnection> dropped;
    synchronized (idle) {
      dropped = new ArrayList<>(idle);
      idle.clear();
    }
    dropped.forEach(ProcessConnection::close);
  }
}
