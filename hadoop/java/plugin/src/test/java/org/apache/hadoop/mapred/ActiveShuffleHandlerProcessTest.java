package org.apache.hadoop.mapred;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.service.FakeMergeProcess;
import io.merganser.hadoop.service.FakeMergeProcess.Conduct;
import java.io.EOFException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.apache.hadoop.mapred.ReduceClient.Header;
import org.apache.hadoop.mapred.ReduceClient.Reply;
import org.apache.hadoop.mapred.ShuffleNode.Pair;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** The service with a merge process, which may fail in any way at any byte. */
class ActiveShuffleHandlerProcessTest extends ShuffleServiceFixture {
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
        // After a failure the process rests, and Java merges.
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
  void javaMergesIfTheProcessDeclines(Conduct conduct) throws Exception {
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
  void spillsThatTheProcessFindsDamagedAreNotSent() throws Exception {
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
  void anAbsentProcessCostsNothingAndIsFoundWhenItStarts() throws Exception {
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
        // Killed and started again between two fetches, so the idle connection is stale.
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
      AtomicBoolean died = new AtomicBoolean();
      try {
        List<Future<Void>> fetched = new ArrayList<>();
        for (int p = 0; p < 16; p++) {
          int partition = p;
          fetched.add(
              reducers.submit(
                  () -> {
                    for (int i = 0; i < 3 || !died.get(); i++) {
                      assertArrayEquals(
                          ShuffleNode.merged(spills, partition),
                          fetchPatiently(node, partition, map(0)));
                    }
                    return null;
                  }));
        }
        eventually("it merges", () -> process.requests() > 5);
        process.die();
        died.set(true);
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

  /** The merge process of this workspace, if it was built. */
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

  /** The command that starts the real merge process. */
  private ProcessBuilder serve(Path socket) {
    Optional<Path> binary = merganser();
    assumeTrue(binary.isPresent(), "no merganser was built");
    return new ProcessBuilder(
            binary.get().toString(),
            "hadoop",
            "serve",
            "--shuffle",
            socket.toString(),
            "--local-dir",
            dir.toString())
        .redirectErrorStream(true)
        .redirectOutput(dir.resolve("log").toFile());
  }

  /**
   * Keys that differ only after 256 KiB. The process merges them if they fit into its memory, and
   * otherwise Java does.
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
      // When it is killed, more is left than all buffers on the way can hold.
      List<List<List<Pair>>> large = spills(6, 1, 2_000_000);
      node.writeDeferred(1, large);
      try (ReduceClient client = node.client()) {
        Reply reply = client.fetch(0, false, map(1));
        Header header = reply.header();
        byte[] got = new byte[(int) header.length()];
        reply.body().readFully(got, 0, got.length / 4);
        process.destroyForcibly().waitFor();
        reply.body().readFully(got, got.length / 4, got.length - got.length / 4);
        assertArrayEquals(ShuffleNode.merged(large, 0), got);
      }
      assertEquals(1, node.metric("Takeovers"));
      assertIdle(node);
      // A spill that the process finds damaged is not sent.
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
