package io.merganser.hadoop.node;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import org.apache.hadoop.metrics2.MetricsCollector;
import org.apache.hadoop.metrics2.MetricsInfo;
import org.apache.hadoop.metrics2.MetricsRecordBuilder;
import org.apache.hadoop.metrics2.MetricsSource;
import org.apache.hadoop.metrics2.annotation.Metrics;
import org.apache.hadoop.metrics2.lib.Interns;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The node of a machine in the metrics of its NodeManager. The node is asked when the metrics are
 * read, and at most every few seconds. Counters are those of the node since it started; while it
 * doesn't answer they keep their last values.
 */
@Metrics(name = NodeMetrics.NAME, about = "The node on which maps run", context = "mapred")
public final class NodeMetrics implements MetricsSource {
  /** The name of the source. */
  public static final String NAME = "MerganserNode";

  private static final Logger LOG = LoggerFactory.getLogger(NodeMetrics.class);

  /** A node that is slower than this doesn't answer; readers of metrics don't wait for long. */
  private static final long PATIENCE_MILLIS = 1_000;

  private static final long FRESH_NANOS = TimeUnit.SECONDS.toNanos(5);

  private static final NodeProbe.Totals NOTHING = new NodeProbe.Totals(0, 0, 0, 0, 0, 0, Map.of());

  private static final MetricsInfo USABLE =
      Interns.info("Usable", "1 if the node answers and map tasks can use it, otherwise 0");
  private static final MetricsInfo MAPS_RUNNING =
      Interns.info("MapsRunning", "Maps on the node now");
  private static final MetricsInfo MAPS_MAX =
      Interns.info("MapsMax", "Most maps on the node at once");
  private static final MetricsInfo MEMORY_IN_USE =
      Interns.info("MemoryInUse", "Bytes of memory of maps on the node now");
  private static final MetricsInfo UPTIME =
      Interns.info("UptimeSeconds", "Seconds since the node started");
  private static final MetricsInfo MAPS_DONE =
      Interns.info("MapsDone", "Maps of the node whose tasks have the results");
  private static final MetricsInfo BYTES_READ =
      Interns.info("BytesRead", "Bytes of blocks and checksums that those maps read");
  private static final MetricsInfo BYTES_SENT =
      Interns.info("BytesSent", "Bytes of the results of those maps");
  private static final MetricsInfo PROCESSOR_MILLIS =
      Interns.info("ProcessorMillis", "Processor time of those maps");
  private static final MetricsInfo MAPS_LEFT =
      Interns.info("MapsLeft", "Maps whose tasks left, or took the results too slowly");
  private static final MetricsInfo NOT_MAPPED =
      Interns.info("NotMapped", "Requests that the node refused or that failed, for any reason");

  /** One counter for each reason that a node can give. */
  private static final Map<HostReason, MetricsInfo> REASONS =
      NodeErrors.REASONS.stream().collect(Collectors.toMap(reason -> reason, NodeMetrics::infoOf));

  private final Path socket;
  private final LongSupplier clock;
  private NodeProbe.State state;
  private NodeProbe.Totals totals = NOTHING;
  private boolean asked;
  private long askedAt;

  /**
   * @param socket the socket of the node
   * @param clock nanoseconds, which never decrease
   */
  public NodeMetrics(Path socket, LongSupplier clock) {
    this.socket = socket;
    this.clock = clock;
  }

  /** {@code NotMappedDamagedBlock} for {@code DAMAGED_BLOCK}. */
  private static MetricsInfo infoOf(HostReason reason) {
    String name =
        Arrays.stream(reason.name().split("_"))
            .map(word -> word.charAt(0) + word.substring(1).toLowerCase(Locale.ROOT))
            .collect(Collectors.joining());
    return Interns.info("NotMapped" + name, "Requests that ended with the reason " + reason.name());
  }

  private void ask() {
    long now = clock.getAsLong();
    if (asked && now - askedAt < FRESH_NANOS) {
      return;
    }
    asked = true;
    askedAt = now;
    try {
      state = NodeProbe.ask(socket, PATIENCE_MILLIS);
      totals = state.details().map(NodeProbe.Details::totals).orElse(NOTHING);
    } catch (IOException e) {
      LOG.debug("the node doesn't answer", e);
      state = null;
    }
  }

  @Override
  public synchronized void getMetrics(MetricsCollector collector, boolean all) {
    ask();
    MetricsRecordBuilder record = collector.addRecord(NAME).setContext("mapred");
    record.addGauge(USABLE, state != null && state.usable() ? 1 : 0);
    record.addGauge(MAPS_RUNNING, state == null ? 0 : state.maps());
    record.addGauge(MAPS_MAX, state == null ? 0 : state.mapsMax());
    record.addGauge(MEMORY_IN_USE, state == null ? 0 : state.memory());
    record.addGauge(UPTIME, state == null ? 0 : totals.seconds());
    record.addCounter(MAPS_DONE, totals.maps());
    record.addCounter(BYTES_READ, totals.bytesRead());
    record.addCounter(BYTES_SENT, totals.bytesSent());
    record.addCounter(PROCESSOR_MILLIS, TimeUnit.NANOSECONDS.toMillis(totals.processorNanos()));
    record.addCounter(MAPS_LEFT, totals.left());
    record.addCounter(NOT_MAPPED, totals.notMappedAtAll());
    REASONS.forEach(
        (reason, info) -> record.addCounter(info, totals.notMapped().getOrDefault(reason, 0L)));
  }
}
