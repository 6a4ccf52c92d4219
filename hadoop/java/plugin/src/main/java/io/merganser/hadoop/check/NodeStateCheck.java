package io.merganser.hadoop.check;

import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.node.NodeProbe;
import io.merganser.hadoop.node.NodeProbe.Folder;
import io.merganser.hadoop.node.NodeProbe.Totals;
import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;

/**
 * Checks what a node that answers tells about itself: its folders against those of the DataNode,
 * its programs, and what it refused.
 */
final class NodeStateCheck {
  private static final String DATA_DIRS = "dfs.datanode.data.dir";

  private final Configuration conf;
  private final List<Finding> findings;

  /**
   * @param findings where the findings are added
   */
  NodeStateCheck(Configuration conf, List<Finding> findings) {
    this.conf = conf;
    this.findings = findings;
  }

  void all(NodeProbe.State state) {
    program(state.programs());
    if (state.details().isEmpty()) {
      findings.add(
          Finding.note(
              "node",
              "merganser "
                  + state.product()
                  + " is too old to say which folders it reads; they were not checked."));
      return;
    }
    NodeProbe.Details details = state.details().get();
    folders(details.folders());
    totals(details.totals());
  }

  private void program(List<String> programs) {
    String named = conf.getTrimmed(Keys.NODE_SSDLET, "");
    if (!named.isEmpty() && !named.startsWith("wasm:") && !programs.contains(named)) {
      findings.add(
          Finding.error(
              "node",
              Keys.NODE_SSDLET
                  + " is "
                  + named
                  + ", which the node doesn't have: all maps run in their tasks. It has "
                  + String.join(", ", programs)
                  + "."));
    }
  }

  private void folders(List<Folder> folders) {
    Set<Path> ofDataNode = dataDirs();
    if (ofDataNode.isEmpty()) {
      findings.add(
          Finding.note(
              "node",
              DATA_DIRS
                  + " is not set in this configuration, so the folders of the node can't be"
                  + " compared with those of the DataNode."));
    }
    Set<Path> known = new LinkedHashSet<>();
    for (Folder folder : folders) {
      Path path = real(Path.of(folder.path()));
      known.add(path);
      boolean strange = !ofDataNode.isEmpty() && !ofDataNode.contains(path);
      findings.add(
          strange
              ? Finding.error(
                  "node",
                  "The node reads "
                      + folder.path()
                      + ", which is not in "
                      + DATA_DIRS
                      + ": start it with --hdfs-data-dir for each folder that is.")
              : folder(folder));
    }
    for (Path dir : ofDataNode) {
      if (!known.contains(dir)) {
        findings.add(
            Finding.error(
                "node",
                "The node doesn't read "
                    + dir
                    + " of "
                    + DATA_DIRS
                    + ", so maps of blocks there run in their tasks: start it with"
                    + " --hdfs-data-dir "
                    + dir
                    + "."));
      }
    }
  }

  private static Finding folder(Folder folder) {
    String path = folder.path();
    return switch (folder.view()) {
      case READABLE -> Finding.ok("node", "It can read blocks below " + path + ".");
      case MISSING ->
          Finding.error(
              "node",
              path
                  + " does not exist, so maps of blocks there run in their tasks: mount it, or"
                  + " start the node with another --hdfs-data-dir.");
      case DENIED ->
          Finding.error(
              "node",
              "The node may not read below "
                  + path
                  + ", so maps of blocks there run in their tasks: run it as the DataNode's user.");
      case UNUSED ->
          Finding.error(
              "node",
              path
                  + " has no folder `current`, so no DataNode has used it: start the node with the"
                  + " folders of "
                  + DATA_DIRS
                  + ".");
      case FAILED ->
          Finding.error("node", "The system fails to read " + path + ": check its disk.");
      case WAITING ->
          Finding.warning(
              "node",
              path + " was not looked at, because another check waits for a disk of the node.");
      case UNKNOWN ->
          Finding.note("node", "The node is newer than this plugin and says more about " + path);
    };
  }

  private void totals(Totals totals) {
    String reasons =
        totals.notMapped().entrySet().stream()
            .map(e -> e.getKey().name() + " " + e.getValue())
            .collect(Collectors.joining(", "));
    findings.add(
        Finding.note(
            "node",
            String.format(
                Locale.ROOT,
                "In %s it has done %d maps, and refused or failed %d%s.",
                age(totals.seconds()),
                totals.maps(),
                totals.notMappedAtAll(),
                reasons.isEmpty() ? "" : " (" + reasons + ")")));
  }

  private static String age(long seconds) {
    Duration age = Duration.ofSeconds(seconds);
    if (age.toHours() >= 2) {
      return age.toHours() + " hours";
    }
    return age.toMinutes() >= 2 ? age.toMinutes() + " minutes" : seconds + " seconds";
  }

  /** The folders of the DataNode, as paths; those in the file system of this machine. */
  private Set<Path> dataDirs() {
    Set<Path> dirs = new LinkedHashSet<>();
    String[] sources = conf.getPropertySources(DATA_DIRS);
    if (sources != null && sources[sources.length - 1].equals("hdfs-default.xml")) {
      // The DataNode has a configuration of its own, which isn't here.
      return dirs;
    }
    for (String dir : conf.getTrimmedStrings(DATA_DIRS)) {
      // A kind of storage may stand before it: [SSD]file:///data/1.
      String place = dir.replaceFirst("^\\[\\w*\\]", "");
      try {
        URI uri = new URI(place);
        if (uri.getScheme() == null || uri.getScheme().equals("file")) {
          dirs.add(real(Path.of(uri.getScheme() == null ? place : uri.getPath())));
        }
      } catch (URISyntaxException | InvalidPathException e) {
        findings.add(Finding.error("node", DATA_DIRS + " names " + dir + ", which is no path."));
      }
    }
    return dirs;
  }

  /** Without links, where this user can look. */
  private static Path real(Path path) {
    try {
      return path.toRealPath();
    } catch (IOException e) {
      return path.toAbsolutePath().normalize();
    }
  }
}
