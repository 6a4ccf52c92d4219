package org.apache.hadoop.mapred;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.capability.Capability;
import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.manifest.Manifest;
import io.merganser.hadoop.node.FakeNode;
import io.merganser.hadoop.service.MergeMetrics;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import javax.crypto.spec.SecretKeySpec;
import org.apache.hadoop.mapred.ReduceClient.Output;
import org.apache.hadoop.mapred.ReduceClient.Reply;
import org.apache.hadoop.mapred.ShuffleNode.Pair;
import org.junit.jupiter.api.Test;

/** The service from start to stop, and its answers to reducers. */
class ActiveShuffleHandlerTest extends ShuffleServiceFixture {
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
  void theMetricsOfTheNodeAreThereIfItIsNamed() throws Exception {
    Path socket = Files.createTempDirectory("node").resolve("s");
    try (FakeNode maps = new FakeNode(socket, dir.resolve("no-file"));
        ShuffleNode node =
            new ShuffleNode(dir, conf -> conf.set(Keys.NODE_SOCKET, socket.toString()))) {
      assertEquals(1, node.nodeMetric("Usable"));
      assertEquals(8, node.nodeMetric("MapsMax"));
      assertEquals(0, maps.asked().size());
    }
    Files.deleteIfExists(socket);
    Files.delete(socket.getParent());
    try (ShuffleNode node = new ShuffleNode(dir, DEFAULTS)) {
      assertThrows(NullPointerException.class, () -> node.nodeMetric("Usable"));
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

  @Test
  void announcesToMapTasksThatItReadsManifests() throws Exception {
    try (ShuffleNode node = new ShuffleNode(dir, DEFAULTS)) {
      assertEquals(Optional.of(Manifest.VERSION), Capability.versionIn(node.service.getMetaData()));
      assertEquals(node.port(), ShuffleHandler.deserializeMetaData(node.service.getMetaData()));
      assertTrue(node.port() > 0);
    }
  }

  @Test
  void itsMetricsExistWhileItRuns() throws Exception {
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
}
