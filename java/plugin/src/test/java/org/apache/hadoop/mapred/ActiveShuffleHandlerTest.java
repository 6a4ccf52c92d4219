package org.apache.hadoop.mapred;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.merganser.hadoop.capability.Capability;
import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.manifest.Manifest;
import io.merganser.hadoop.service.FakeMergeProcess;
import io.merganser.hadoop.service.FakeMergeProcess.Conduct;
import io.merganser.hadoop.service.MergeMetrics;
import io.netty.buffer.PooledByteBufAllocator;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.IOException;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.stream.Stream;
import javax.crypto.spec.SecretKeySpec;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509ExtendedTrustManager;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.nativeio.NativeIO;
import org.apache.hadoop.mapred.ReduceClient.Header;
import org.apache.hadoop.mapred.ReduceClient.Output;
import org.apache.hadoop.mapred.ReduceClient.Reply;
import org.apache.hadoop.mapred.ShuffleNode.Pair;
import org.apache.hadoop.mapreduce.MRConfig;
import org.apache.hadoop.security.ssl.SSLFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A real service on a real port, and clients that speak to it as reducers do. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ActiveShuffleHandlerTest {
  private static final Consumer<Configuration> DEFAULTS = conf -> {};

  @TempDir Path dir;

  private final Random random = new Random(42);

  private List<List<List<Pair>>> spills(int spills, int partitions, int bytesEach) {
    return ShuffleNode.randomSpills(random, spills, partitions, bytesEach, 2000);
  }

  private static String map(int map) {
    return ShuffleNode.attempt(map);
  }

  private static void eventually(String what, BooleanSupplier holds) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    while (!holds.getAsBoolean()) {
      assertTrue(System.nanoTime() < end, what);
      Thread.sleep(10);
    }
  }

  /** Nothing is held any more: no grant, no memory, no spill. */
  private static void assertIdle(ShuffleNode node) throws InterruptedException {
    eventually("grants come back", () -> node.metric("FetchesRunning") == 0);
    assertEquals(0, node.metric("MemoryInUse"));
    assertEquals(0, node.metric("FetchesWaiting"));
    eventually("spills are closed", () -> ShuffleNode.openSpills() == 0);
  }

  @Test
  void aReducerGetsADeferredMapOutputMerged() throws Exception {
    try (ShuffleNode node = new ShuffleNode(dir, DEFAULTS)) {
      List<List<List<Pair>>> spills =
          List.of(
              List.of(List.of(new Pair("a", new byte[] {1}), new Pair("c", new byte[] {2}))),
              List.of(List.of(new Pair("b", new byte[] {3}), new Pair("c", new byte[] {4}))));
      node.writeDeferred(0, spills);
      try (ReduceClient client = node.client()) {
        Reply reply = client.fetch(0, false, map(0));
        assertEquals(200, reply.status());
        Output output = reply.outputs(1).get(0);
        assertEquals(map(0), output.map());
        assertArrayEquals(
            ShuffleNode.segment(
                List.of(
                    new Pair("a", new byte[] {1}),
                    new Pair("b", new byte[] {3}),
                    new Pair("c", new byte[] {2}),
                    new Pair("c", new byte[] {4}))),
            output.bytes());
        assertTrue(client.closedByNode());
      }
      assertEquals(1, node.metric("MergesByJava"));
      assertIdle(node);
    }
  }

  @Test
  void everyPartitionIsWhatAnEagerMergeWrites() throws Exception {
    try (ShuffleNode node = new ShuffleNode(dir, DEFAULTS)) {
      int partitions = 5;
      List<List<List<Pair>>> spills = spills(7, partitions, 300_000);
      node.writeDeferred(0, spills);
      for (int p = 0; p < partitions; p++) {
        try (ReduceClient client = node.client()) {
          assertArrayEquals(
              ShuffleNode.merged(spills, p),
              client.fetch(p, false, map(0)).outputs(1).get(0).bytes());
        }
      }
      assertIdle(node);
    }
  }

  @Test
  void aBatchMayMixDeferredAndStockMapOutputs() throws Exception {
    try (ShuffleNode node = new ShuffleNode(dir, DEFAULTS)) {
      List<List<List<List<Pair>>>> all = new ArrayList<>();
      String[] maps = new String[9];
      for (int m = 0; m < maps.length; m++) {
        all.add(spills(1 + m % 4, 3, 200_000));
        maps[m] = map(m);
        if (m % 3 == 1) {
          node.writeStock(m, all.get(m));
        } else {
          node.writeDeferred(m, all.get(m));
        }
      }
      for (int p = 0; p < 3; p++) {
        try (ReduceClient client = node.client()) {
          List<Output> outputs = client.fetch(p, false, maps).outputs(maps.length);
          for (int m = 0; m < maps.length; m++) {
            assertEquals(maps[m], outputs.get(m).map());
            assertArrayEquals(ShuffleNode.merged(all.get(m), p), outputs.get(m).bytes());
          }
        }
      }
      assertEquals(18, node.metric("MergesByJava"));
      assertIdle(node);
    }
  }

  @Test
  void stockMapOutputsNeedNoPlace() throws Exception {
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
  void aConnectionIsKeptAliveForTheNextFetchAndClosedWhenIdle() throws Exception {
    try (ShuffleNode node =
        new ShuffleNode(
            dir, conf -> conf.setInt(ShuffleHandler.SHUFFLE_CONNECTION_KEEP_ALIVE_TIME_OUT, 1))) {
      List<List<List<Pair>>> deferred = spills(3, 2, 300_000);
      List<List<List<Pair>>> stock = spills(3, 2, 300_000);
      node.writeDeferred(0, deferred);
      node.writeStock(1, stock);
      try (ReduceClient client = node.client()) {
        for (int round = 0; round < 6; round++) {
          List<Output> got = client.fetch(round % 2, true, map(0), map(1)).outputs(2);
          assertArrayEquals(ShuffleNode.merged(deferred, round % 2), got.get(0).bytes());
          assertArrayEquals(ShuffleNode.merged(stock, round % 2), got.get(1).bytes());
        }
        assertIdle(node);
        assertTrue(client.closedByNode(), "an idle connection is closed");
      }
    }
  }

  @Test
  void aFetchWithoutTheJobsTokenIsRefused() throws Exception {
    try (ShuffleNode node = new ShuffleNode(dir, DEFAULTS)) {
      node.writeDeferred(0, spills(2, 1, 1000));
      try (ReduceClient thief =
          new ReduceClient(node.port(), new SecretKeySpec("guess".getBytes(), "HmacSHA1"))) {
        Reply reply = thief.fetch(0, false, map(0));
        assertEquals(401, reply.status());
        reply.body().readAllBytes();
        assertTrue(thief.closedByNode());
      }
      assertEquals(0, node.metric("MergesByJava"));
      assertIdle(node);
    }
  }

  /** As the stock service does with a map output, where the native library lets it. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void whatWasServedNeedNotStayInThePageCache(boolean managed) throws Exception {
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
                    assertTrue(wait >= 1000 && wait < 2000, "milliseconds, and spread out");
                    Thread.sleep(wait);
                    continue;
                  }
                  for (int m = 0; m < maps; m++) {
                    most.accumulateAndGet(node.metric("MemoryInUse"), Math::max);
                    // A reducer that takes its time.
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
      // Netty takes memory in pieces of 4 MiB, one or two for each of its arenas.
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

  /** Fetches one map output and comes again as often as it is turned away. */
  private static byte[] fetchPatiently(ShuffleNode node, int reduce, String map) throws Exception {
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

  /** What is done to one spill of a map output. */
  private enum Harm {
    ONE_BIT,
    CHECKSUM,
    CUT_SHORT,
    DELETED,
    ANOTHER_FILE_BEHIND_A_LINK
  }

  @ParameterizedTest
  @EnumSource(Harm.class)
  void aDamagedSpillNeverPassesAsAWholeMapOutput(Harm harm) throws Exception {
    try (ShuffleNode node = new ShuffleNode(dir, DEFAULTS)) {
      List<List<List<Pair>>> good = spills(3, 1, 100_000);
      List<List<List<Pair>>> harmed = spills(3, 1, 1_000_000);
      node.writeDeferred(0, good);
      node.writeDeferred(1, harmed);
      Path spill = node.spill(1, 1);
      long size = Files.size(spill);
      switch (harm) {
        case ONE_BIT -> flip(spill, size / 2);
        case CHECKSUM -> flip(spill, size - 1);
        case CUT_SHORT -> {
          try (FileChannel file = FileChannel.open(spill, StandardOpenOption.WRITE)) {
            file.truncate(size - 100);
          }
        }
        case DELETED -> Files.delete(spill);
        case ANOTHER_FILE_BEHIND_A_LINK -> {
          Path elsewhere = Files.move(spill, dir.resolve("elsewhere"));
          Files.createSymbolicLink(spill, elsewhere);
        }
      }
      for (int round = 0; round < 2; round++) {
        try (ReduceClient client = node.client()) {
          Reply reply = client.fetch(0, false, map(0), map(1), map(0));
          assertEquals(200, reply.status());
          assertArrayEquals(ShuffleNode.merged(good, 0), reply.output().bytes());
          // The header tells the reducer which of the map outputs it can't have.
          Header header = reply.header();
          assertEquals(map(1), header.map());
          byte[] whole = new byte[(int) header.length()];
          long began = System.nanoTime();
          assertThrows(EOFException.class, () -> reply.body().readFully(whole));
          assertTrue(
              round == 0 || System.nanoTime() - began > TimeUnit.MILLISECONDS.toNanos(900),
              "a reducer that comes back at once is held up");
        }
      }
      assertIdle(node);
      assertEquals(2, node.metric("Damaged"));
      try (ReduceClient client = node.client()) {
        assertArrayEquals(
            ShuffleNode.merged(good, 0), client.fetch(0, false, map(0)).output().bytes());
      }
    }
  }

  private static void flip(Path file, long at) throws IOException {
    byte[] bytes = Files.readAllBytes(file);
    bytes[(int) at] ^= 4;
    Files.write(file, bytes);
  }

  @Test
  void aDamagedManifestIsNotServedAndMissingMapsAreRefusedAsEver() throws Exception {
    try (ShuffleNode node = new ShuffleNode(dir, DEFAULTS)) {
      node.writeDeferred(0, spills(2, 1, 1000));
      flip(node.fileOut(0), Files.size(node.fileOut(0)) - 1);
      try (ReduceClient client = node.client()) {
        Reply reply = client.fetch(0, false, map(0));
        assertEquals(map(0), reply.header().map());
        assertThrows(EOFException.class, () -> reply.body().readByte());
      }
      try (ReduceClient client = node.client()) {
        assertEquals(500, client.fetch(0, false, map(7)).status());
      }
      assertIdle(node);
    }
  }

  private ShuffleNode nodeWithProcess(Path socket) throws Exception {
    return new ShuffleNode(
        dir,
        conf -> {
          conf.set(Keys.SOCKET, socket.toString());
          conf.setLong(Keys.SOCKET_TIMEOUT, 500);
        });
  }

  @Test
  void theMergeProcessMergesAndItsConnectionsAreKept() throws Exception {
    Path socket = dir.resolve("s");
    try (FakeMergeProcess process = new FakeMergeProcess(socket);
        ShuffleNode node = nodeWithProcess(socket)) {
      List<List<List<Pair>>> spills = spills(4, 3, 400_000);
      node.writeDeferred(0, spills);
      for (int round = 0; round < 4; round++) {
        for (int p = 0; p < 3; p++) {
          assertArrayEquals(ShuffleNode.merged(spills, p), fetchPatiently(node, p, map(0)));
        }
      }
      assertEquals(12, node.metric("MergesByProcess"));
      assertEquals(0, node.metric("MergesByJava"));
      assertEquals(12, process.requests());
      assertEquals(1, process.accepted());
      assertIdle(node);
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = Conduct.class,
      names = {"DIES", "STALLS", "GARBAGE", "HUGE_FRAME", "ENDS_EARLY"})
  void javaTakesOverAtTheExactByte(Conduct conduct) throws Exception {
    Path socket = dir.resolve("s");
    List<List<List<Pair>>> spills = spills(4, 1, 200_000);
    byte[] expected = ShuffleNode.merged(spills, 0);
    int length = expected.length;
    int[] cuts = {0, 1, 50_000, 131_072, 131_073, length / 2, length - 5, length - 4, length - 1};
    for (int cut : conduct == Conduct.STALLS ? new int[] {0, length / 2, length - 2} : cuts) {
      try (FakeMergeProcess process = new FakeMergeProcess(socket);
          ShuffleNode node = nodeWithProcess(socket)) {
        node.writeDeferred(0, spills);
        process.behave(conduct, cut);
        assertArrayEquals(expected, fetchPatiently(node, 0, map(0)), conduct + " at " + cut);
        assertEquals(1, node.metric("MergesByProcess") + node.metric("MergesByJava"));
        // Once it has failed it is left alone, and Java merges.
        assertArrayEquals(expected, fetchPatiently(node, 0, map(0)));
        assertEquals(1, process.requests());
        assertIdle(node);
      }
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = Conduct.class,
      names = {"BUSY", "ORDER_UNKNOWN", "MISSING", "DIES_BEFORE_END", "TOO_LONG"})
  void javaMergesWhatTheProcessDoesNot(Conduct conduct) throws Exception {
    Path socket = dir.resolve("s");
    try (FakeMergeProcess process = new FakeMergeProcess(socket);
        ShuffleNode node = nodeWithProcess(socket)) {
      List<List<List<Pair>>> spills = spills(3, 2, 300_000);
      node.writeDeferred(0, spills);
      process.behave(conduct, 0);
      for (int p = 0; p < 2; p++) {
        assertArrayEquals(ShuffleNode.merged(spills, p), fetchPatiently(node, p, map(0)));
      }
      assertEquals(2, node.metric("MergesByProcess") + node.metric("MergesByJava"));
      assertIdle(node);
    }
  }

  @Test
  void whatTheProcessFindsDamagedIsNotSent() throws Exception {
    Path socket = dir.resolve("s");
    try (FakeMergeProcess process = new FakeMergeProcess(socket);
        ShuffleNode node = nodeWithProcess(socket)) {
      node.writeDeferred(0, spills(3, 1, 300_000));
      process.behave(Conduct.DAMAGED, 0);
      try (ReduceClient client = node.client()) {
        Reply reply = client.fetch(0, false, map(0));
        reply.header();
        assertThrows(EOFException.class, () -> reply.body().readByte());
      }
      assertEquals(1, node.metric("Damaged"));
      assertIdle(node);
    }
  }

  @Test
  void wrongBytesOfTheProcessAreNoticedAndTheNextFetchGetsRightOnes() throws Exception {
    Path socket = dir.resolve("s");
    try (FakeMergeProcess process = new FakeMergeProcess(socket);
        ShuffleNode node = nodeWithProcess(socket)) {
      List<List<List<Pair>>> spills = spills(3, 1, 300_000);
      byte[] expected = ShuffleNode.merged(spills, 0);
      node.writeDeferred(0, spills);
      process.behave(Conduct.WRONG_BYTE, expected.length / 2);
      try (ReduceClient client = node.client()) {
        Reply reply = client.fetch(0, false, map(0));
        assertThrows(EOFException.class, reply::output);
      }
      assertArrayEquals(expected, fetchPatiently(node, 0, map(0)));
      assertEquals(1, node.metric("MergesByJava"));
      assertIdle(node);
    }
  }

  @Test
  void anAbsentProcessCostsNothingAndIsFoundWhenItComes() throws Exception {
    Path socket = dir.resolve("s");
    try (ShuffleNode node = nodeWithProcess(socket)) {
      List<List<List<Pair>>> spills = spills(3, 1, 100_000);
      byte[] expected = ShuffleNode.merged(spills, 0);
      node.writeDeferred(0, spills);
      for (int i = 0; i < 5; i++) {
        assertArrayEquals(expected, fetchPatiently(node, 0, map(0)));
      }
      assertEquals(5, node.metric("MergesByJava"));
      assertEquals(0, node.metric("Takeovers"));
      try (FakeMergeProcess process = new FakeMergeProcess(socket)) {
        while (node.metric("MergesByProcess") == 0) {
          assertArrayEquals(expected, fetchPatiently(node, 0, map(0)));
          Thread.sleep(100);
        }
        // Killed and started again between two fetches: the kept connection is stale.
        process.die();
        try (FakeMergeProcess next = new FakeMergeProcess(socket)) {
          long before = node.metric("MergesByProcess");
          assertArrayEquals(expected, fetchPatiently(node, 0, map(0)));
          assertEquals(before + 1, node.metric("MergesByProcess"));
          assertEquals(1, next.requests());
        }
      }
      assertIdle(node);
    }
  }

  @Test
  void manyReducersSurviveTheProcess() throws Exception {
    Path socket = dir.resolve("s");
    try (FakeMergeProcess process = new FakeMergeProcess(socket);
        ShuffleNode node = nodeWithProcess(socket)) {
      List<List<List<Pair>>> spills = spills(4, 16, 500_000);
      node.writeDeferred(0, spills);
      ExecutorService reducers = Executors.newFixedThreadPool(16);
      try {
        List<Future<Void>> fetched = new ArrayList<>();
        for (int p = 0; p < 16; p++) {
          int partition = p;
          fetched.add(
              reducers.submit(
                  () -> {
                    for (int i = 0; i < 3; i++) {
                      assertArrayEquals(
                          ShuffleNode.merged(spills, partition),
                          fetchPatiently(node, partition, map(0)));
                    }
                    return null;
                  }));
        }
        eventually("it merges", () -> process.requests() > 5);
        process.die();
        for (Future<Void> done : fetched) {
          done.get();
        }
      } finally {
        reducers.shutdownNow();
      }
      assertTrue(node.metric("MergesByJava") > 0);
      assertEquals(0, node.metric("Damaged"));
      assertIdle(node);
    }
  }

  @Test
  void tellsMapTasksThatItReadsManifestsAndReadersOfThePortNothing() throws Exception {
    try (ShuffleNode node = new ShuffleNode(dir, DEFAULTS)) {
      assertEquals(Optional.of(Manifest.VERSION), Capability.versionIn(node.service.getMetaData()));
      assertEquals(node.port(), ShuffleHandler.deserializeMetaData(node.service.getMetaData()));
      assertTrue(node.port() > 0);
    }
  }

  @Test
  void itsMetricsComeAndGoWithIt() throws Exception {
    ShuffleNode node = new ShuffleNode(dir, DEFAULTS);
    assertNotNull(node.service.ms.getSource(MergeMetrics.NAME));
    node.close();
    assertNull(node.service.ms.getSource(MergeMetrics.NAME));
  }

  @Test
  void aSettingThatMakesNoSenseStopsItWithItsName() {
    Exception e =
        assertThrows(
            Exception.class,
            () -> new ShuffleNode(dir, conf -> conf.setLong(Keys.SERVICE_MEMORY, -5)).close());
    assertTrue(e.toString().contains(Keys.SERVICE_MEMORY), e.toString());
  }

  @Test
  void afterARestartItServesJobsFromItsDatabase() throws Exception {
    org.apache.hadoop.fs.Path recovery =
        new org.apache.hadoop.fs.Path(Files.createDirectory(dir.resolve("recovery")).toString());
    List<List<List<Pair>>> spills = spills(3, 1, 10_000);
    try (ShuffleNode node = new ShuffleNode(dir, DEFAULTS, recovery, true)) {
      node.writeDeferred(0, spills);
    }
    try (ShuffleNode node = new ShuffleNode(dir, DEFAULTS, recovery, false)) {
      assertArrayEquals(ShuffleNode.merged(spills, 0), fetchPatiently(node, 0, map(0)));
      node.endJob();
      try (ReduceClient client = node.client()) {
        assertEquals(401, client.fetch(0, false, map(0)).status());
      }
    }
  }

  @Test
  void aJobsOutputsAreForgottenWhenItEnds() throws Exception {
    try (ShuffleNode node = new ShuffleNode(dir, DEFAULTS)) {
      node.writeDeferred(0, spills(3, 1, 10_000));
      fetchPatiently(node, 0, map(0));
      assertEquals(1, node.metric("OutputsRemembered"));
      node.endJob();
      assertEquals(0, node.metric("OutputsRemembered"));
      assertFalse(Files.notExists(node.fileOut(0)));
    }
  }

  @Test
  void withTlsItServesTheSameBytes() throws Exception {
    Path keys = dir.resolve("keys.jks");
    Process keytool =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
                "-genkeypair",
                "-alias",
                "node",
                "-keyalg",
                "RSA",
                "-dname",
                "CN=localhost",
                "-storetype",
                "JKS",
                "-storepass",
                "password",
                "-keypass",
                "password",
                "-keystore",
                keys.toString())
            .redirectErrorStream(true)
            .start();
    String said = new String(keytool.getInputStream().readAllBytes());
    assertEquals(0, keytool.waitFor(), said);
    Configuration server = new Configuration(false);
    server.set("ssl.server.keystore.location", keys.toString());
    server.set("ssl.server.keystore.password", "password");
    server.set("ssl.server.keystore.keypassword", "password");
    // Hadoop looks its file up in the class path.
    Path classes = Path.of(getClass().getProtectionDomain().getCodeSource().getLocation().toURI());
    Path settings = classes.resolve("ssl-server-of-a-test.xml");
    try (OutputStream out = Files.newOutputStream(settings)) {
      server.writeXml(out);
    }
    try (ShuffleNode node =
        new ShuffleNode(
            dir,
            conf -> {
              conf.setBoolean(MRConfig.SHUFFLE_SSL_ENABLED_KEY, true);
              conf.set(SSLFactory.SSL_SERVER_CONF_KEY, settings.getFileName().toString());
            })) {
      List<List<List<Pair>>> deferred = spills(5, 2, 500_000);
      List<List<List<Pair>>> stock = spills(5, 2, 500_000);
      node.writeDeferred(0, deferred);
      node.writeStock(1, stock);
      SSLContext context = SSLContext.getInstance("TLS");
      context.init(null, new TrustManager[] {new TrustsAll()}, null);
      Socket socket =
          context
              .getSocketFactory()
              .createSocket(ReduceClient.connect(node.port()), "localhost", node.port(), true);
      try (ReduceClient client = new ReduceClient(socket, node.port(), node.key())) {
        for (int p = 0; p < 2; p++) {
          List<Output> outputs = client.fetch(p, true, map(0), map(1), map(0)).outputs(3);
          assertArrayEquals(ShuffleNode.merged(deferred, p), outputs.get(0).bytes());
          assertArrayEquals(ShuffleNode.merged(stock, p), outputs.get(1).bytes());
          assertArrayEquals(ShuffleNode.merged(deferred, p), outputs.get(2).bytes());
        }
      }
      assertIdle(node);
    } finally {
      Files.delete(settings);
    }
  }

  /** A client that does not care whom it speaks to; it is an object for SSLContext's sake. */
  private static final class TrustsAll extends X509ExtendedTrustManager {
    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type) {}

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type) {}

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket) {}

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket) {}

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine) {}

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine) {}

    @Override
    public X509Certificate[] getAcceptedIssuers() {
      return new X509Certificate[0];
    }
  }

  /** The merge process that the workspace builds, where it was built. */
  private static Optional<Path> merganser() {
    String named = System.getenv("MERGANSER_BINARY");
    if (named != null) {
      return Optional.of(Path.of(named));
    }
    return Stream.of("release", "debug")
        .map(profile -> Path.of("..", "..", "target", profile, "merganser").toAbsolutePath())
        .filter(Files::isExecutable)
        .findFirst();
  }

  /** How the real merge process is started. */
  private ProcessBuilder serve(Path socket) {
    Optional<Path> binary = merganser();
    assumeTrue(binary.isPresent(), "no merganser was built");
    return new ProcessBuilder(
            binary.get().toString(),
            "serve",
            "--shuffle",
            socket.toString(),
            "--local-dir",
            dir.toString())
        .redirectErrorStream(true)
        .redirectOutput(dir.resolve("log").toFile());
  }

  /**
   * Keys that differ only behind 256 KiB: the process merges those that fit in what it is granted,
   * and Java the others.
   */
  @ParameterizedTest
  @CsvSource({"1, 300000, true", "4, 700000, false"})
  void keysLargerThanItsBuffersAreMergedInOrder(int large, int keyBytes, boolean fit)
      throws Exception {
    Path socket = dir.resolve("s");
    Process process = serve(socket).start();
    try (ShuffleNode node = nodeWithProcess(socket)) {
      eventually("it listens", () -> Files.exists(socket));
      List<List<List<Pair>>> spills = new ArrayList<>();
      for (int i = 0; i < 4; i++) {
        String start = "k".repeat(i < large ? keyBytes : 100);
        byte[] value = new byte[i < large ? 1 : 100_000];
        List<Pair> pairs = new ArrayList<>();
        for (char end : new char[] {'a', (char) ('b' + i), 'f'}) {
          pairs.add(new Pair(start + end, value));
        }
        spills.add(List.of(pairs));
      }
      node.writeDeferred(0, spills);
      assertArrayEquals(ShuffleNode.merged(spills, 0), fetchPatiently(node, 0, map(0)));
      assertEquals(fit ? 0 : 1, node.metric("MergesByJava"));
      assertIdle(node);
    } finally {
      process.destroyForcibly().waitFor();
    }
  }

  @Test
  void theRealProcessMergesAndMayBeKilled() throws Exception {
    Path socket = dir.resolve("s");
    ProcessBuilder serve = serve(socket);
    Process process = serve.start();
    try (ShuffleNode node = nodeWithProcess(socket)) {
      eventually("it listens: " + Files.readString(dir.resolve("log")), () -> Files.exists(socket));
      List<List<List<Pair>>> spills = spills(6, 4, 1_000_000);
      node.writeDeferred(0, spills);
      for (int round = 0; round < 3; round++) {
        for (int p = 0; p < 4; p++) {
          assertArrayEquals(ShuffleNode.merged(spills, p), fetchPatiently(node, p, map(0)));
        }
      }
      assertEquals(12, node.metric("MergesByProcess"));
      try (ReduceClient client = node.client()) {
        Reply reply = client.fetch(0, false, map(0));
        Header header = reply.header();
        byte[] got = new byte[(int) header.length()];
        reply.body().readFully(got, 0, got.length / 4);
        process.destroyForcibly().waitFor();
        reply.body().readFully(got, got.length / 4, got.length - got.length / 4);
        assertArrayEquals(ShuffleNode.merged(spills, 0), got);
      }
      assertEquals(1, node.metric("Takeovers"));
      assertIdle(node);
      // A spill that it finds damaged is not sent.
      Files.delete(socket);
      process = serve.start();
      eventually("it listens again", () -> Files.exists(socket));
      long before = node.metric("MergesByProcess");
      while (node.metric("MergesByProcess") == before) {
        assertArrayEquals(ShuffleNode.merged(spills, 0), fetchPatiently(node, 0, map(0)));
        Thread.sleep(100);
      }
      flip(node.spill(0, 1), 500_000);
      try (ReduceClient client = node.client()) {
        Reply reply = client.fetch(0, false, map(0));
        assertThrows(EOFException.class, reply::output);
      }
      assertEquals(1, node.metric("Damaged"));
      assertIdle(node);
    } finally {
      process.destroyForcibly().waitFor();
    }
  }
}
