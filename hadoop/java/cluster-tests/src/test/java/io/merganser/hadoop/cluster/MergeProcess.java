package io.merganser.hadoop.cluster;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** A process {@code merganser hadoop serve}: one that merges, or a node on which maps run. */
final class MergeProcess implements AutoCloseable {
  private final Process process;
  private final Path socket;

  private MergeProcess(Process process, Path socket) {
    this.process = process;
    this.socket = socket;
  }

  /**
   * The command {@code merganser}: that of the system property {@code merganser.binary}, else of
   * the variable {@code MERGANSER}, else the one that the workspace built last.
   *
   * @return empty if it was not built; then tests that need it leave something out
   * @throws IllegalStateException instead, if the variable {@code CI} is set, so that no test is
   *     left out there
   */
  static Optional<Path> binary() {
    String named = System.getProperty("merganser.binary", "");
    if (named.isEmpty()) {
      named = System.getenv().getOrDefault("MERGANSER", "");
    }
    Stream<Path> places =
        named.isEmpty()
            ? Stream.of(
                Path.of("../../../target/release/merganser"),
                Path.of("../../../target/debug/merganser"))
            : Stream.of(Path.of(named));
    Optional<Path> found = places.map(Path::toAbsolutePath).filter(Files::isExecutable).findFirst();
    if (found.isEmpty() && System.getenv("CI") != null) {
      throw new IllegalStateException(
          "the command merganser was not found, and no test may be left out where CI is set:"
              + " build it, or name it by -Dmerganser.binary or MERGANSER");
    }
    return found;
  }

  /** Starts a merge process and waits until its socket is there. */
  static MergeProcess start(Path log, Path localDir) throws Exception {
    return start(log, "--shuffle", List.of("--local-dir", localDir.toString()));
  }

  /** Starts a node, on which maps may run, and waits until its socket is there. */
  static MergeProcess startNode(Path log, Path dataDir, List<String> more) throws Exception {
    List<String> options = new ArrayList<>(List.of("--hdfs-data-dir", dataDir.toString()));
    options.addAll(more);
    return start(log, "--hdfs", options);
  }

  private static MergeProcess start(Path log, String service, List<String> options)
      throws Exception {
    Path binary =
        binary().orElseThrow(() -> new IOException("no merganser: name it by -Dmerganser.binary"));
    // A socket's path has at most 107 bytes; that of a build folder may be longer.
    Path socket = Files.createTempDirectory("merganser").resolve("serve.sock");
    Files.createDirectories(log.getParent());
    List<String> command = new ArrayList<>();
    command.addAll(List.of(binary.toString(), "hadoop", "serve", service, socket.toString()));
    command.addAll(options);
    command.addAll(List.of("--memory", "64M"));
    Process process =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile()))
            .start();
    Wait.until(
        "the process listens",
        20,
        () -> {
          if (!process.isAlive()) {
            throw new IOException("the process ended: " + Files.readString(log));
          }
          return Files.exists(socket);
        });
    return new MergeProcess(process, socket);
  }

  Path socket() {
    return socket;
  }

  long pid() {
    return process.pid();
  }

  boolean isAlive() {
    return process.isAlive();
  }

  /** Ends the process as kill -9 does. */
  void kill() throws InterruptedException {
    process.destroyForcibly();
    process.waitFor(10, TimeUnit.SECONDS);
  }

  @Override
  public void close() throws IOException {
    process.destroy();
    try {
      if (!process.waitFor(5, TimeUnit.SECONDS)) {
        process.destroyForcibly();
      }
    } catch (InterruptedException e) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    }
    ClusterUnderTest.delete(socket.getParent());
  }
}
