package org.apache.hadoop.mapred;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.ReduceClient.Reply;
import org.apache.hadoop.mapred.ShuffleNode.Pair;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A real service on a real port, with clients that act as reducers. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
abstract class ShuffleServiceFixture {
  static final Consumer<Configuration> DEFAULTS = conf -> {};

  @TempDir Path dir;

  final Random random = new Random(42);

  List<List<List<Pair>>> spills(int spills, int partitions, int bytesEach) {
    return ShuffleNode.randomSpills(random, spills, partitions, bytesEach, 2000);
  }

  static String map(int map) {
    return ShuffleNode.attempt(map);
  }

  static void eventually(String what, BooleanSupplier holds) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    while (!holds.getAsBoolean()) {
      assertTrue(System.nanoTime() < end, what);
      Thread.sleep(10);
    }
  }

  /** Checks that no grant, no memory and no spill is held. */
  static void assertIdle(ShuffleNode node) throws InterruptedException {
    eventually("grants come back", () -> node.metric("FetchesRunning") == 0);
    assertEquals(0, node.metric("MemoryInUse"));
    assertEquals(0, node.metric("FetchesWaiting"));
    eventually("spills are closed", () -> ShuffleNode.openSpills() == 0);
  }

  /** Fetches one map output, and tries again whenever it is turned away. */
  static byte[] fetchPatiently(ShuffleNode node, int reduce, String map) throws Exception {
    while (true) {
      try (ReduceClient client = node.client()) {
        Reply reply = client.fetch(reduce, false, map);
        if (reply.status() == 200) {
          return reply.outputs(1).get(0).bytes();
        }
        assertEquals(429, reply.status());
        Thread.sleep(Integer.parseInt(reply.headers().get("retry-after")));
      }
    }
  }

  static void flip(Path file, long at) throws IOException {
    byte[] bytes = Files.readAllBytes(file);
    bytes[(int) at] ^= 4;
    Files.write(file, bytes);
  }
}
