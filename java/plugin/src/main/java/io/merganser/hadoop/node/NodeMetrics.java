package io.merganser.hadoop.node;

import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.apache.hadoop.metrics2.annotation.Metric;
import org.apache.hadoop.metrics2.annotation.Metrics;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The node of a machine in the metrics of its NodeManager. The node is asked when the metrics are
 * read, and at most every few seconds.
 */
@Metrics(name = NodeMetrics.NAME, about = "The node on which maps run", context = "mapred")
public final class NodeMetrics {
  /** The name of the source. */
  public static final String NAME = "MerganserNode";

  private static final Logger LOG = LoggerFactory.getLogger(NodeMetrics.class);

  /** A node that is slower than this doesn't answer; readers of metrics don't wait for long. */
  private static final long PATIENCE_MILLIS = 1_000;

  private static final long FRESH_NANOS = TimeUnit.SECONDS.toNanos(5);

  private static final NodeProbe.State ABSENT = new NodeProbe.State(0, 0, 0, 0, "");

  private final Path socket;
  private final LongSupplier clock;
  private NodeProbe.State state;
  private long askedAt;

  /**
   * @param socket the socket of the node
   * @param clock nanoseconds, which never decrease
   */
  public NodeMetrics(Path socket, LongSupplier clock) {
    this.socket = socket;
    this.clock = clock;
  }

  private synchronized NodeProbe.State state() {
    long now = clock.getAsLong();
    if (state == null || now - askedAt >= FRESH_NANOS) {
      askedAt = now;
      try {
        state = NodeProbe.ask(socket, PATIENCE_MILLIS);
      } catch (IOException e) {
        LOG.debug("the node doesn't answer", e);
        state = ABSENT;
      }
    }
    return state;
  }

  /** Returns 1 if the node answers and map tasks can use it, otherwise 0. */
  @Metric("1 if the node answers and map tasks can use it, otherwise 0")
  public int getUsable() {
    return state().usable() ? 1 : 0;
  }

  /** Returns the maps that run on the node now. */
  @Metric("Maps on the node now")
  public int getMapsRunning() {
    return state().maps();
  }

  /** Returns the maps that may run on the node at once. */
  @Metric("Most maps on the node at once")
  public int getMapsMax() {
    return state().mapsMax();
  }

  /** Returns the bytes of memory that maps on the node take now. */
  @Metric("Bytes of memory of maps on the node now")
  public long getMemoryInUse() {
    return state().memory();
  }
}
