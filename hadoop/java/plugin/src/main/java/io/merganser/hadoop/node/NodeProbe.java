package io.merganser.hadoop.node;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;

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
   * @param programs the names of its programs
   * @param product the version of the program
   * @param details the rest, from nodes that speak version 3 or newer
   */
  public record State(
      int version,
      int maps,
      int mapsMax,
      long memory,
      List<String> programs,
      String product,
      Optional<Details> details) {
    /** Whether map tasks of this plugin can use the node. */
    public boolean usable() {
      return version >= NodeRequest.VERSION;
    }
  }

  /**
   * What a node tells since version 3.
   *
   * @param uploads whether jobs may bring programs
   * @param totals what it did since it started
   * @param folders the folders of the DataNode, if they were asked for
   */
  public record Details(boolean uploads, Totals totals, List<Folder> folders) {}

  /**
   * What a node did since it started.
   *
   * @param seconds how long ago that was
   * @param maps the maps whose tasks have the results
   * @param bytesRead the bytes of blocks and checksums that those maps read
   * @param bytesSent the bytes of their results
   * @param processorNanos their processor time
   * @param left the maps whose tasks left, or took the results too slowly
   * @param notMapped the requests that were refused or failed, by the reason of the task
   */
  public record Totals(
      long seconds,
      long maps,
      long bytesRead,
      long bytesSent,
      long processorNanos,
      long left,
      Map<HostReason, Long> notMapped) {
    /** Returns the requests that were refused or failed, for any reason. */
    public long notMappedAtAll() {
      return notMapped.values().stream().mapToLong(Long::longValue).sum();
    }
  }

  /**
   * A folder of the DataNode, as the node has it.
   *
   * @param view what the node sees there
   * @param path its absolute path
   */
  public record Folder(View view, String path) {}

  /** What a node sees at a folder; in the order of the protocol's numbers. */
  public enum View {
    /** Blocks can be read, as far as it looked. */
    READABLE,
    /** There is no such folder. */
    MISSING,
    /** The node may not read it, or something in it. */
    DENIED,
    /** No DataNode has ever used it. */
    UNUSED,
    /** The system fails to read it. */
    FAILED,
    /** Not looked at, because another request waits for a disk. */
    WAITING,
    /** Something that only newer nodes know. */
    UNKNOWN;

    static View of(int number) {
      return number < UNKNOWN.ordinal() ? values()[number] : UNKNOWN;
    }
  }

  /**
   * Asks a node for all but its folders.
   *
   * @param patienceMillis how long it may say nothing
   * @throws IOException if nothing that speaks the protocol listens there
   */
  public static State ask(Path socket, long patienceMillis) throws IOException {
    return ask(socket, patienceMillis, false);
  }

  /**
   * Asks a node. One of an older release is asked for what it can tell.
   *
   * @param patienceMillis how long it may say nothing
   * @param folders whether the node looks at its folders, which may wait for a disk
   * @throws IOException if nothing that speaks the protocol listens there
   */
  public static State ask(Path socket, long patienceMillis, boolean folders) throws IOException {
    try (NodeConversation node = new NodeConversation(socket, patienceMillis, NOBODY)) {
      State state = node.hello();
      return state.version() < NodeRequest.VERSION_OF_STATES ? state : node.state(folders);
    } catch (OnHostException e) {
      throw new IOException(e.getMessage(), e);
    }
  }
}
