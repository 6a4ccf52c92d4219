package io.merganser.hadoop.node;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NodeMetricsTest {
  @TempDir Path dir;

  @Test
  void areTheStateOfTheNode() throws IOException {
    Path folder = Files.createTempDirectory("node");
    Path socket = folder.resolve("s");
    AtomicLong clock = new AtomicLong();
    NodeMetrics metrics = new NodeMetrics(socket, clock::get);
    assertEquals(0, metrics.getUsable());
    assertEquals(0, metrics.getMapsMax());
    try (FakeNode node = new FakeNode(socket, dir.resolve("no-file"))) {
      assertEquals(0, metrics.getUsable(), "asked too soon");
      clock.addAndGet(5_000_000_000L);
      assertEquals(1, metrics.getUsable());
      assertEquals(2, metrics.getMapsRunning());
      assertEquals(8, metrics.getMapsMax());
      assertEquals(4096, metrics.getMemoryInUse());
      assertEquals(0, node.asked().size());
    }
    assertEquals(1, metrics.getUsable(), "asked too soon");
    clock.addAndGet(5_000_000_000L);
    assertEquals(0, metrics.getUsable());
    assertEquals(0, metrics.getMapsRunning());
    Files.deleteIfExists(socket);
    Files.delete(folder);
  }
}
