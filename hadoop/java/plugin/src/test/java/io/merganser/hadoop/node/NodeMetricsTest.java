package io.merganser.hadoop.node;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.node.FakeNode.Conduct;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.metrics2.AbstractMetric;
import org.apache.hadoop.metrics2.MetricType;
import org.apache.hadoop.metrics2.impl.MetricsCollectorImpl;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NodeMetricsTest {
  @TempDir Path dir;

  /** All metrics now, by name. */
  private static Map<String, AbstractMetric> read(NodeMetrics metrics) {
    var collector = new MetricsCollectorImpl();
    metrics.getMetrics(collector, true);
    Map<String, AbstractMetric> found = new HashMap<>();
    collector.getRecords().get(0).metrics().forEach(metric -> found.put(metric.name(), metric));
    return found;
  }

  private static void assertMetric(long expected, NodeMetrics metrics, String name) {
    assertEquals(expected, read(metrics).get(name).value().longValue(), name);
  }

  @Test
  void areTheStateOfTheNode() throws IOException {
    Path folder = Files.createTempDirectory("node");
    Path socket = folder.resolve("s");
    AtomicLong clock = new AtomicLong();
    NodeMetrics metrics = new NodeMetrics(socket, clock::get);
    assertMetric(0, metrics, "Usable");
    assertMetric(0, metrics, "MapsMax");
    assertMetric(0, metrics, "NotMappedDamagedBlock");
    try (FakeNode node = new FakeNode(socket, dir.resolve("no-file"))) {
      assertMetric(0, metrics, "Usable");
      clock.addAndGet(5_000_000_000L);
      assertMetric(1, metrics, "Usable");
      assertMetric(2, metrics, "MapsRunning");
      assertMetric(8, metrics, "MapsMax");
      assertMetric(4096, metrics, "MemoryInUse");
      assertMetric(7300, metrics, "UptimeSeconds");
      assertMetric(11, metrics, "MapsDone");
      assertMetric(12, metrics, "BytesRead");
      assertMetric(13, metrics, "BytesSent");
      assertMetric(14, metrics, "ProcessorMillis");
      assertMetric(15, metrics, "MapsLeft");
      assertMetric(10, metrics, "NotMapped");
      assertMetric(2, metrics, "NotMappedBusy");
      assertMetric(7, metrics, "NotMappedProtocol");
      assertMetric(1, metrics, "NotMappedDamagedBlock");
      assertMetric(0, metrics, "NotMappedNoLocalReplica");
      assertEquals(0, node.asked().size());
      assertEquals(1, node.accepted(), "asked once in five seconds");
    }
    assertMetric(1, metrics, "Usable");
    clock.addAndGet(5_000_000_000L);
    assertMetric(0, metrics, "Usable");
    assertMetric(0, metrics, "MapsRunning");
    assertMetric(11, metrics, "MapsDone");
    try (FakeNode node = new FakeNode(socket, dir.resolve("no-file"))) {
      node.behave(Conduct.OLD, 0);
      clock.addAndGet(5_000_000_000L);
      assertMetric(1, metrics, "Usable");
      assertMetric(0, metrics, "MapsDone");
    }
    Files.deleteIfExists(socket);
    Files.delete(folder);
  }

  @Test
  void totalsAreCountersAndEachReasonHasOne() {
    Map<String, AbstractMetric> found =
        read(new NodeMetrics(dir.resolve("no-socket"), System::nanoTime));
    assertEquals(MetricType.COUNTER, found.get("MapsDone").type());
    assertEquals(MetricType.COUNTER, found.get("NotMappedBusy").type());
    assertEquals(MetricType.GAUGE, found.get("MapsRunning").type());
    long reasons = found.keySet().stream().filter(name -> name.startsWith("NotMapped")).count();
    assertEquals(NodeErrors.REASONS.size() + 1, reasons);
    assertTrue(NodeErrors.REASONS.contains(HostReason.NO_UPLOADS));
  }
}
