package io.merganser.hadoop.node;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.node.FakeNode.Conduct;
import io.merganser.hadoop.node.NodeProbe.Folder;
import io.merganser.hadoop.node.NodeProbe.View;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class NodeProbeTest {
  /** Bytes of the fake node's hello without its last part, the version of the program. */
  private static final int HELLO_BYTES = 45;

  /** Bytes of the fake node's state without folders. */
  private static final int STATE_BYTES = 145;

  @Test
  void aNodeTellsItsState() throws IOException {
    Path folder = Files.createTempDirectory("node");
    Path socket = folder.resolve("s");
    try (FakeNode node = new FakeNode(socket, folder.resolve("no-file"))) {
      node.show(new Folder(View.READABLE, "/data/1"), new Folder(View.UNKNOWN, "/data/2"));
      NodeProbe.State state = NodeProbe.ask(socket, 10_000);
      assertEquals(List.of("wordcount", "grep"), state.programs());
      NodeProbe.Details details = state.details().orElseThrow();
      assertTrue(details.uploads());
      assertEquals(List.of(), details.folders());
      assertEquals(
          new NodeProbe.Totals(
              7300,
              11,
              12,
              13,
              14_000_000,
              15,
              Map.of(HostReason.BUSY, 2L, HostReason.PROTOCOL, 7L, HostReason.DAMAGED_BLOCK, 1L)),
          details.totals());
      assertEquals(10, details.totals().notMappedAtAll());
      details = NodeProbe.ask(socket, 10_000, true).details().orElseThrow();
      assertEquals(
          List.of(new Folder(View.READABLE, "/data/1"), new Folder(View.UNKNOWN, "/data/2")),
          details.folders());
      assertEquals(View.WAITING, View.of(5));
      assertEquals(View.UNKNOWN, View.of(200));
      for (int bytes = 0; bytes < STATE_BYTES; bytes++) {
        node.behave(Conduct.CUT_STATE, bytes);
        IOException e = assertThrows(IOException.class, () -> NodeProbe.ask(socket, 10_000));
        assertTrue(e.getMessage().contains("too short"), bytes + ": " + e.getMessage());
      }
      node.behave(Conduct.CUT_STATE, STATE_BYTES);
      assertEquals(11, NodeProbe.ask(socket, 10_000).details().orElseThrow().totals().maps());
      // An older node isn't asked for more than it knows.
      node.behave(Conduct.OLD, 0);
      assertTrue(NodeProbe.ask(socket, 10_000, true).details().isEmpty());
    }
    Files.deleteIfExists(socket);
    Files.delete(folder);
  }

  @Test
  void aHelloThatIsCutOffIsAnError() throws IOException {
    Path folder = Files.createTempDirectory("node");
    Path socket = folder.resolve("s");
    try (FakeNode node = new FakeNode(socket, folder.resolve("no-file"))) {
      assertEquals("9.8.7", NodeProbe.ask(socket, 10_000).product());
      for (int bytes = 0; bytes < HELLO_BYTES; bytes++) {
        node.behave(Conduct.CUT_HELLO, bytes);
        IOException e = assertThrows(IOException.class, () -> NodeProbe.ask(socket, 10_000));
        assertTrue(e.getMessage().contains("too short"), e.getMessage());
      }
      node.behave(Conduct.CUT_HELLO, HELLO_BYTES);
      assertEquals("", NodeProbe.ask(socket, 10_000).product());
    }
    Files.deleteIfExists(socket);
    Files.delete(folder);
  }
}
