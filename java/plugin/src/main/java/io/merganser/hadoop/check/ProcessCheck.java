package io.merganser.hadoop.check;

import io.merganser.hadoop.config.Keys;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.hadoop.conf.Configuration;

/** Checks the merge process: whether it answers and may read the local dirs. */
final class ProcessCheck {
  /** The longest path that the system takes for a Unix socket, in bytes. */
  private static final int SOCKET_PATH_MAX = 107;

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
    if ("kerberos".equalsIgnoreCase(conf.get("hadoop.security.authentication"))) {
      findings.add(
          Finding.note(
              "process", "On a secure cluster " + Keys.SOCKET + " is not used: Java merges."));
      return;
    }
    String advice = "until it is repaired the NodeManager merges in Java.";
    if (!socket.startsWith("/") || socket.getBytes().length > SOCKET_PATH_MAX) {
      findings.add(
          Finding.error(
              "process",
              Keys.SOCKET
                  + ", "
                  + socket
                  + ", must be an absolute path of at most "
                  + SOCKET_PATH_MAX
                  + " bytes; "
                  + advice));
      return;
    }
    if (!Files.exists(Path.of(socket))) {
      findings.add(
          Finding.error(
              "process",
              socket
                  + " does not exist: start merganser serve --shuffle "
                  + socket
                  + "; "
                  + advice));
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
                  + ". Is merganser serve running, and is this its user? Meanwhile: "
                  + advice));
    }
  }
}
