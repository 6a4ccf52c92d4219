package org.apache.hadoop.mapred;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.EOFException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.mapred.ReduceClient.Header;
import org.apache.hadoop.mapred.ReduceClient.Reply;
import org.apache.hadoop.mapred.ShuffleNode.Pair;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Map outputs that were changed after their map task wrote them. */
class ActiveShuffleHandlerDamageTest extends ShuffleServiceFixture {
  /** The damage to one spill of a map output. */
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
          long began = System.nanoTime();
          Reply reply = client.fetch(0, false, map(0), map(1), map(0));
          assertEquals(200, reply.status());
          assertArrayEquals(ShuffleNode.merged(good, 0), reply.output().bytes());
          // The header tells the reducer which of the map outputs it can't have.
          Header header = reply.header();
          assertEquals(map(1), header.map());
          byte[] whole = new byte[(int) header.length()];
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

  /** Audit finding F22: a key of 1.2 GB in a sparse spill, more than the heap of these tests. */
  @Test
  void f22_aSpillThatClaimsAHugeKeyIsRefusedAndOtherFetchesAreServed() throws Exception {
    try (ShuffleNode node = new ShuffleNode(dir, DEFAULTS)) {
      List<List<List<Pair>>> good = spills(3, 1, 100_000);
      node.writeDeferred(0, good);
      node.writeSparseKey(1, 1_200_000_000);
      for (int round = 0; round < 2; round++) {
        try (ReduceClient client = node.client()) {
          Reply reply = client.fetch(0, false, map(0), map(1));
          assertArrayEquals(ShuffleNode.merged(good, 0), reply.output().bytes());
          assertEquals(map(1), reply.header().map());
          assertThrows(EOFException.class, () -> reply.body().readByte());
        }
      }
      assertIdle(node);
      assertEquals(2, node.metric("Damaged"));
    }
  }

  @Test
  void aDamagedManifestIsNotServedAndMissingMapsAreRefused() throws Exception {
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
}
