package org.apache.hadoop.mapred;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.config.Keys;
import io.netty.buffer.PooledByteBufAllocator;
import java.io.FileDescriptor;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.io.nativeio.NativeIO;
import org.apache.hadoop.mapred.ReduceClient.Reply;
import org.apache.hadoop.mapred.ShuffleNode.Pair;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The resources that fetches take of a node: memory, merges, descriptors, page cache. */
class ActiveShuffleHandlerLoadTest extends ShuffleServiceFixture {
  /** Spills leave the page cache as map outputs of the stock service do. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void spillsThatWereServedLeaveThePageCache(boolean managed) throws Exception {
    List<String> dropped = Collections.synchronizedList(new ArrayList<>());
    NativeIO.POSIX.CacheManipulator before = NativeIO.POSIX.getCacheManipulator();
    NativeIO.POSIX.setCacheManipulator(
        new NativeIO.POSIX.CacheManipulator() {
          @Override
          public void posixFadviseIfPossible(
              String file, FileDescriptor fd, long offset, long length, int advice) {
            assertTrue(fd.valid());
            assertEquals(NativeIO.POSIX.POSIX_FADV_DONTNEED, advice);
            dropped.add(file + " " + offset + " " + length);
          }
        });
    try (ShuffleNode node =
        new ShuffleNode(
            dir, conf -> conf.setBoolean(ShuffleHandler.SHUFFLE_MANAGE_OS_CACHE, managed))) {
      List<List<List<Pair>>> spills = spills(3, 2, 100_000);
      node.writeDeferred(0, spills);
      try (ReduceClient client = node.client()) {
        client.fetch(1, false, map(0)).outputs(1);
      }
      assertIdle(node);
      List<String> expected = new ArrayList<>();
      for (int i = 0; managed && i < 3; i++) {
        long first = ShuffleNode.segment(spills.get(i).get(0)).length;
        long length = Files.size(node.spill(0, i)) - first;
        expected.add(node.spill(0, i) + " " + first + " " + length);
      }
      assertEquals(expected, dropped);
    } finally {
      NativeIO.POSIX.setCacheManipulator(before);
    }
  }

  @Test
  void manyFetchesShareALittleMemory() throws Exception {
    long budget = 1 << 20;
    try (ShuffleNode node =
        new ShuffleNode(
            dir,
            conf -> {
              conf.setLong(Keys.SERVICE_MEMORY, budget);
              conf.setInt(Keys.SERVICE_MERGES, 2);
            })) {
      int maps = 4;
      int reducers = 32;
      List<List<List<List<Pair>>>> all = new ArrayList<>();
      for (int m = 0; m < maps; m++) {
        all.add(spills(6, reducers, 60_000));
        node.writeDeferred(m, all.get(m));
      }
      AtomicLong most = new AtomicLong();
      long pooled = PooledByteBufAllocator.DEFAULT.metric().usedDirectMemory();
      AtomicInteger turnedAway = new AtomicInteger();
      List<Callable<Void>> fetches = new ArrayList<>();
      for (int r = 0; r < reducers; r++) {
        int reduce = r;
        fetches.add(
            () -> {
              while (true) {
                try (ReduceClient client = node.client()) {
                  Reply reply = client.fetch(reduce, false, map(0), map(1), map(2), map(3));
                  if (reply.status() == 429) {
                    turnedAway.incrementAndGet();
                    int wait = Integer.parseInt(reply.headers().get("retry-after"));
                    assertTrue(wait >= 1000 && wait < 2000, "milliseconds, and random");
                    Thread.sleep(wait);
                    continue;
                  }
                  for (int m = 0; m < maps; m++) {
                    most.accumulateAndGet(node.metric("MemoryInUse"), Math::max);
                    // A slow reducer.
                    Thread.sleep(30);
                    assertArrayEquals(
                        ShuffleNode.merged(all.get(m), reduce), reply.output().bytes());
                  }
                  return null;
                }
              }
            });
      }
      ExecutorService reducersAtOnce = Executors.newFixedThreadPool(reducers);
      try {
        for (Future<Void> done : reducersAtOnce.invokeAll(fetches)) {
          done.get();
        }
      } finally {
        reducersAtOnce.shutdownNow();
      }
      assertTrue(turnedAway.get() > 0, "some were turned away");
      assertEquals(turnedAway.get(), node.metric("TurnedAway"));
      assertTrue(most.get() > 0 && most.get() <= budget, "within the budget: " + most);
      assertEquals(maps * reducers, node.metric("MergesByJava"));
      // Netty allocates memory in pieces of 4 MiB, one or two for each of its arenas.
      pooled = PooledByteBufAllocator.DEFAULT.metric().usedDirectMemory() - pooled;
      assertTrue(pooled <= 32 << 20, "direct memory grew by " + pooled);
      assertIdle(node);
    }
  }

  @Test
  void aFetchThatNeedsMoreThanAllMemoryIsServed() throws Exception {
    try (ShuffleNode node = new ShuffleNode(dir, conf -> conf.setLong(Keys.SERVICE_MEMORY, 1))) {
      List<List<List<Pair>>> spills = spills(40, 1, 100_000);
      node.writeDeferred(0, spills);
      try (ReduceClient client = node.client()) {
        assertArrayEquals(
            ShuffleNode.merged(spills, 0),
            client.fetch(0, false, map(0)).outputs(1).get(0).bytes());
      }
      assertIdle(node);
    }
  }

  @Test
  void stockMapOutputsNeedNoAdmission() throws Exception {
    try (ShuffleNode node =
        new ShuffleNode(
            dir,
            conf -> {
              conf.setInt(Keys.SERVICE_MERGES, 1);
              conf.setLong(Keys.SERVICE_MEMORY, 1);
            })) {
      List<List<List<Pair>>> big = spills(3, 1, 3_000_000);
      List<List<List<Pair>>> stock = spills(2, 1, 1000);
      node.writeDeferred(0, big);
      node.writeStock(1, stock);
      try (ReduceClient slow = node.client();
          ReduceClient client = node.client()) {
        slow.fetch(0, false, map(0)).header();
        assertArrayEquals(
            ShuffleNode.merged(stock, 0), client.fetch(0, false, map(1)).outputs(1).get(0).bytes());
      }
      assertIdle(node);
    }
  }

  @Test
  void aReducerThatGoesAwayLeavesNothingOpen() throws Exception {
    try (ShuffleNode node = new ShuffleNode(dir, conf -> conf.setInt(Keys.SERVICE_MERGES, 2))) {
      List<List<List<Pair>>> spills = spills(5, 1, 2_000_000);
      node.writeDeferred(0, spills);
      fetchAndLeave(node);
      assertIdle(node);
      long before = ShuffleNode.descriptors();
      for (int i = 0; i < 20; i++) {
        fetchAndLeave(node);
      }
      assertIdle(node);
      eventually("no descriptor is left", () -> ShuffleNode.descriptors() <= before);
      try (ReduceClient client = node.client()) {
        assertArrayEquals(
            ShuffleNode.merged(spills, 0),
            client.fetch(0, false, map(0)).outputs(1).get(0).bytes());
      }
    }
  }

  /** The audit suspected that a manifest is parsed in the event loop, before admission. */
  @Test
  void whileAManifestIsReadOtherConnectionsOfTheEventLoopAreServed() throws Exception {
    try (ShuffleNode node =
        new ShuffleNode(dir, conf -> conf.setInt(ShuffleHandler.MAX_SHUFFLE_THREADS, 1))) {
      List<List<List<Pair>>> deferred = spills(3, 1, 10_000);
      List<List<List<Pair>>> stock = spills(2, 1, 1000);
      node.writeDeferred(0, deferred);
      node.writeStock(1, stock);
      assertArrayEquals(ShuffleNode.merged(stock, 0), fetchPatiently(node, 0, map(1)));
      CountDownLatch slowDisk = new CountDownLatch(1);
      AtomicInteger blocked = new AtomicInteger();
      for (int thread = 0; thread < 4; thread++) {
        node.service
            .merges()
            .lookUp(
                () -> {
                  blocked.incrementAndGet();
                  try {
                    slowDisk.await();
                  } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                  }
                });
      }
      eventually("all threads that read manifests are busy", () -> blocked.get() == 4);
      ExecutorService reducer = Executors.newSingleThreadExecutor();
      try {
        Future<byte[]> waits = reducer.submit(() -> fetchPatiently(node, 0, map(0)));
        assertArrayEquals(ShuffleNode.merged(stock, 0), fetchPatiently(node, 0, map(1)));
        Thread.sleep(200);
        assertArrayEquals(ShuffleNode.merged(stock, 0), fetchPatiently(node, 0, map(1)));
        assertFalse(waits.isDone(), "a fetch waits for its manifest");
        // A reducer that leaves meanwhile is forgotten.
        try (ReduceClient leaver = node.client()) {
          leaver.send(0, false, map(0));
        }
        slowDisk.countDown();
        assertArrayEquals(ShuffleNode.merged(deferred, 0), waits.get());
      } finally {
        slowDisk.countDown();
        reducer.shutdownNow();
      }
      assertIdle(node);
    }
  }

  private void fetchAndLeave(ShuffleNode node) throws IOException, InterruptedException {
    try (ReduceClient client = node.client()) {
      Reply reply = client.fetch(0, false, map(0));
      if (reply.status() == 200) {
        reply.header();
        reply.body().readNBytes(random.nextInt(500_000));
      }
    }
  }

  @Test
  void aReducerThatDoesNotReadGivesItsPlaceToOthersAndGetsTheRestLater() throws Exception {
    try (ShuffleNode node =
        new ShuffleNode(
            dir,
            conf -> {
              conf.setInt(Keys.SERVICE_MERGES, 1);
              conf.setInt(Keys.STALLED_SECONDS, 1);
            })) {
      List<List<List<Pair>>> first = spills(4, 1, 3_000_000);
      List<List<List<Pair>>> second = spills(4, 1, 100_000);
      node.writeDeferred(0, first);
      node.writeDeferred(1, second);
      try (ReduceClient slow = node.client()) {
        Reply reply = slow.fetch(0, false, map(0), map(1));
        byte[] expected = ShuffleNode.merged(first, 0);
        assertEquals(expected.length, reply.header().length());
        byte[] got = new byte[expected.length];
        int at = 0;
        for (int round = 0; round < 2; round++) {
          reply.body().readFully(got, at, 1_000_000);
          at += 1_000_000;
          assertArrayEquals(ShuffleNode.merged(second, 0), fetchPatiently(node, 0, map(1)));
          assertEquals(round + 1, node.metric("PutOff"));
        }
        reply.body().readFully(got, at, got.length - at);
        assertArrayEquals(expected, got);
        assertArrayEquals(ShuffleNode.merged(second, 0), reply.output().bytes());
      }
      assertIdle(node);
    }
  }
}
