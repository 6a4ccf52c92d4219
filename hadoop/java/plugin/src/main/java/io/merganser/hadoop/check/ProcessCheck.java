package io.merganser.hadoop.check;

import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.node.NodeProbe;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.hadoop.conf.Configuration;

/**
 * Checks the processes of this machine: whether the merge process answers and may read the local
 * dirs, and whether the node answers that maps may run on.
 */
final class ProcessCheck {
  /** The longest path that the system takes for a Unix socket, in bytes. */
  private static final int SOCKET_PATH_MAX = 107;

  private static final long PATIENCE_MILLIS = 5_000;

  private static final String BLOCK_TOKENS = "dfs.block.access.token.enable";

  private final Configuration conf;
  private final List<Finding> findings;

  /**
   * @param findings where the findings are added
   */
  ProcessCheck(Configuration conf, List<Finding> findings) {
    this.conf = conf;
    this.findings = findings;
  }

  void mergeProcess() {
    String socket = conf.getTrimmed(Keys.SOCKET, "");
    if (socket.isEmpty()) {
      findings.add(
          Finding.note(
              "process",
              Keys.SOCKET
                  + " is not set: the NodeManager merges in Java, which takes more of its"
                  + " processor time."));
      return;
    }
    if (isSecure()) {
      findings.add(
          Finding.note(
              "process", "On a secure cluster " + Keys.SOCKET + " is not used: Java merges."));
      return;
    }
    String advice = "until it is repaired the NodeManager merges in Java.";
    if (!socketIsThere(
        "process", Keys.SOCKET, socket, "merganser hadoop serve --shuffle", advice)) {
      return;
    }
    try (ProcessProbe probe = new ProcessProbe(Path.of(socket))) {
      ProcessProbe.Hello hello = probe.hello();
      findings.add(
          Finding.ok(
              "process",
              "merganser "
                  + hello.product()
                  + " listens on "
                  + socket
                  + ": "
                  + hello.merges()
                  + " merges now, "
                  + hello.memory()
                  + " bytes in use."));
      for (Path dir : InstallationCheck.localDirsOf(conf)) {
        String why = probe.whyNotReadable(dir);
        findings.add(
            why.isEmpty()
                ? Finding.ok("process", "It may read below " + dir + ".")
                : Finding.error(
                    "process",
                    "It can't read below "
                        + dir
                        + " ("
                        + why
                        + "): start it with --local-dir "
                        + dir
                        + ", as the NodeManager's user; "
                        + advice));
      }
    } catch (IOException e) {
      findings.add(
          Finding.error(
              "process",
              socket
                  + ": "
                  + e.getMessage()
                  + ". Is merganser hadoop serve running, and is this its user? Meanwhile: "
                  + advice));
    }
  }

  void node() {
    String socket = conf.getTrimmed(Keys.NODE_SOCKET, "");
    if (socket.isEmpty()) {
      findings.add(
          Finding.note("node", Keys.NODE_SOCKET + " is not set: all maps run in their tasks."));
      return;
    }
    if (isSecure()) {
      findings.add(
          Finding.note(
              "node",
              "On a secure cluster " + Keys.NODE_SOCKET + " is not used: maps run in tasks."));
      return;
    }
    String advice = "until it is repaired maps run in their tasks.";
    if (!socketIsThere("node", Keys.NODE_SOCKET, socket, "merganser hadoop serve --hdfs", advice)) {
      return;
    }
    if (conf.getBoolean(BLOCK_TOKENS, false)) {
      findings.add(
          Finding.warning(
              "node",
              BLOCK_TOKENS
                  + " is true: the node can't check block tokens, so maps run in their tasks."));
    }
    try {
      NodeProbe.State state = NodeProbe.ask(Path.of(socket), PATIENCE_MILLIS, true);
      if (!state.usable()) {
        findings.add(
            Finding.error(
                "node",
                "merganser "
                    + state.product()
                    + " on "
                    + socket
                    + " is older than this plugin: "
                    + advice));
        return;
      }
      findings.add(
          Finding.ok(
              "node",
              "merganser "
                  + state.product()
                  + " listens on "
                  + socket
                  + ": "
                  + state.maps()
                  + " of at most "
                  + state.mapsMax()
                  + " maps now."));
      new NodeStateCheck(conf, findings).all(state);
    } catch (IOException e) {
      findings.add(
          Finding.error(
              "node",
              e.getMessage()
                  + ". Is merganser hadoop serve --hdfs running, and may this user open its socket?"
                  + " Meanwhile: "
                  + advice));
    }
  }

  private boolean isSecure() {
    return "kerberos".equalsIgnoreCase(conf.get("hadoop.security.authentication"));
  }

  /** Whether a setting names a socket that exists; if not, says what to do. */
  private boolean socketIsThere(
      String what, String key, String socket, String command, String advice) {
    if (!socket.startsWith("/") || socket.getBytes().length > SOCKET_PATH_MAX) {
      findings.add(
          Finding.error(
              what,
              key
                  + ", "
                  + socket
                  + ", must be an absolute path of at most "
                  + SOCKET_PATH_MAX
                  + " bytes; "
                  + advice));
      return false;
    }
    if (!Files.exists(Path.of(socket))) {
      findings.add(
          Finding.error(
              what, socket + " does not exist: start " + command + " " + socket + "; " + advice));
      return false;
    }
    return true;
  }
}
