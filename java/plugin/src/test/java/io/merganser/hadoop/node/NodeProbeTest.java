package io.merganser.hadoop.node;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.node.FakeNode.Conduct;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

class NodeProbeTest {
  /** Bytes of the fake node's hello without its last part, the version of the program. */
  private static final int HELLO_BYTES = 45;

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
