package io.merganser.hadoop.cluster;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;

/** The files and descriptors that a node still holds when its jobs are over. */
final class Leaks {
  private static final Pattern MAP_OUTPUT = Pattern.compile("/appcache/.*(spill|file\\.out)");

  private Leaks() {}

  /**
   * Returns when no node has a file of a job, and no process of a node has a descriptor of one.
   * Fails if that takes too long.
   */
  static void assertNone(ClusterUnderTest cluster) throws Exception {
    List<String> held = new ArrayList<>();
    try {
      Wait.until(
          "nothing held",
          30,
          () -> {
            held.clear();
            for (Node node : cluster.nodes()) {
              node.jobFiles().forEach(file -> held.add("file " + file));
              for (long pid : pids(node)) {
                held.addAll(openBelow(pid, node.localDir()));
              }
            }
            return held.isEmpty();
          });
    } catch (java.util.concurrent.TimeoutException e) {
      throw new AssertionError("still held after the job: " + held, e);
    }
  }

  /** The processes of a node: that of its NodeManager, and its merge process if it is alive. */
  private static List<Long> pids(Node node) {
    List<Long> pids = new ArrayList<>();
    pids.add(node.process().map(Process::pid).orElse(ProcessHandle.current().pid()));
    node.merges().filter(MergeProcess::isAlive).ifPresent(merges -> pids.add(merges.pid()));
    return pids;
  }

  /** The map outputs below {@code localDir} that process {@code pid} has open. */
  static List<String> openBelow(long pid, Path localDir) throws IOException {
    List<String> open = new ArrayList<>();
    String jobs = localDir.resolve("usercache").toString();
    for (Path link : links(pid)) {
      try {
        String target = Files.readSymbolicLink(link).toString();
        if (target.startsWith(jobs) && MAP_OUTPUT.matcher(target).find()) {
          open.add("descriptor " + link + " of " + target);
        }
      } catch (IOException e) {
        // It has been closed since it was listed.
        continue;
      }
    }
    return open;
  }

  private static List<Path> links(long pid) throws IOException {
    List<Path> links = new ArrayList<>();
    try (DirectoryStream<Path> all = Files.newDirectoryStream(Path.of("/proc", "" + pid, "fd"))) {
      all.forEach(links::add);
    }
    return links;
  }
}
