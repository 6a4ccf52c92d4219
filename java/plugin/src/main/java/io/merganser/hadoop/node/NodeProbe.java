package io.merganser.hadoop.node;

import java.io.IOException;
import java.nio.file.Path;

/** Asks the node for its state. */
public final class NodeProbe {
  private static final NodeConversation.Watcher NOBODY =
      new NodeConversation.Watcher() {
        @Override
        public void alive() {
          // Nothing waits for this conversation.
        }

        @Override
        public void done(long splitBytes) {
          // There is no split.
        }
      };

  private NodeProbe() {}

  /**
   * The state of a node.
   *
   * @param version the newest version of the protocol that it speaks
   * @param maps the maps that run now
   * @param mapsMax the maps that may run at once
   * @param memory the bytes of memory in use now
   * @param product the version of the program
   */
  public record State(int version, int maps, int mapsMax, long memory, String product) {
    /** Whether map tasks of this plugin can use the node. */
    public boolean usable() {
      return version >= NodeRequest.VERSION;
    }
  }

  /**
   * Asks a node.
   *
   * @param patienceMillis how long it may say nothing
   * @throws IOException if nothing that speaks the protocol listens there
   */
  public static State ask(Path socket, long patienceMillis) throws IOException {
    try (NodeConversation node = new NodeConversation(socket, patienceMillis, NOBODY)) {
      return node.hello();
    } catch (OnHostException e) {
      throw new IOException(e.getMessage(), e);
    }
  }
}
