package io.merganser.hadoop.cluster;

import io.merganser.hadoop.config.Keys;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.hadoop.mapred.ShuffleHandler;
import org.apache.hadoop.yarn.api.records.NodeState;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.nodemanager.NodeManager;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNode;

/**
 * A NodeManager of a {@link ClusterUnderTest}, in the JVM of the test or in one of its own that can
 * be killed. When it starts again, it has the same ports and recovers its state.
 */
final class Node implements AutoCloseable {
  /**
   * The programs of a node.
   *
   * @param shuffleHandler class name of the auxiliary service {@code mapreduce_shuffle}
   * @param mergeProcess whether the node has a merge process
   * @param ownJvm whether the NodeManager has a process of its own
   * @param settings further settings of the NodeManager
   * @param disk folder for the local dir; if empty, it is next to the NodeManager's other folders
   */
  record Kind(
      String shuffleHandler,
      boolean mergeProcess,
      boolean ownJvm,
      Map<String, String> settings,
      Optional<Path> disk) {
    private Kind(String shuffleHandler, boolean mergeProcess) {
      this(shuffleHandler, mergeProcess, false, Map.of(), Optional.empty());
    }

    /** Stock Hadoop. */
    static final Kind STOCK = new Kind(ShuffleHandler.class.getName(), false);

    /** Our shuffle service, which merges in Java. */
    static final Kind JAVA = new Kind(Active.HANDLER, false);

    /** Our shuffle service and a merge process. */
    static final Kind PROCESS = new Kind(Active.HANDLER, true);

    /** The kinds with our service that can run here: with a process only if it was built. */
    static List<Kind> ours() {
      return MergeProcess.binary().isPresent() ? List.of(PROCESS, JAVA) : List.of(JAVA);
    }

    /** Our service as operators run it, with a merge process if one was built. */
    static Kind best() {
      return ours().get(0);
    }

    @Override
    public String toString() {
      if (!shuffleHandler.equals(Active.HANDLER)) {
        return "stock node";
      }
      return mergeProcess ? "node with merge process" : "node that merges in Java";
    }

    Kind inOwnJvm() {
      return new Kind(shuffleHandler, mergeProcess, true, settings, disk);
    }

    Kind with(Map<String, String> more) {
      Map<String, String> all = new HashMap<>(settings);
      all.putAll(more);
      return new Kind(shuffleHandler, mergeProcess, ownJvm, Map.copyOf(all), disk);
    }

    Kind on(Path disk) {
      return new Kind(shuffleHandler, mergeProcess, ownJvm, settings, Optional.of(disk));
    }

    /** A node whose plugin reads manifests up to another version. */
    static Kind ofVersion(int version) {
      return new Kind(OtherVersionHandler.class.getName(), false)
          .with(Map.of(OtherVersionHandler.VERSION, Integer.toString(version)));
    }
  }

  private final ClusterUnderTest cluster;
  private final Path folder;
  private final Kind kind;
  private final YarnConfiguration conf;
  private final int port;
  private final int shufflePort;
  private MergeProcess merges;
  private NodeManager inside;
  private Process outside;

  Node(ClusterUnderTest cluster, Path folder, Kind kind) throws IOException {
    this.cluster = cluster;
    this.folder = folder;
    this.kind = kind;
    this.port = Ports.free();
    this.shufflePort = Ports.free();
    Files.createDirectories(localDir());
    conf = new YarnConfiguration(cluster.daemons());
    conf.set(YarnConfiguration.NM_ADDRESS, "localhost:" + port);
    conf.set(YarnConfiguration.NM_LOCALIZER_ADDRESS, "localhost:" + Ports.free());
    conf.set(YarnConfiguration.NM_WEBAPP_ADDRESS, "localhost:" + Ports.free());
    conf.set(YarnConfiguration.NM_COLLECTOR_SERVICE_ADDRESS, "localhost:0");
    conf.set(YarnConfiguration.NM_LOCAL_DIRS, localDir().toString());
    conf.set(YarnConfiguration.NM_LOG_DIRS, folder.resolve("logs").toString());
    conf.setFloat(YarnConfiguration.NM_MAX_PER_DISK_UTILIZATION_PERCENTAGE, 100);
    conf.setInt(YarnConfiguration.NM_PMEM_MB, 2048);
    conf.setInt(YarnConfiguration.NM_VCORES, 16);
    conf.setBoolean(YarnConfiguration.NM_PMEM_CHECK_ENABLED, false);
    conf.setBoolean(YarnConfiguration.NM_VMEM_CHECK_ENABLED, false);
    // Files that no test reads would cost every container some processor time.
    conf.setBoolean(YarnConfiguration.NM_CONTAINER_MONITOR_ENABLED, false);
    conf.setBoolean(YarnConfiguration.NM_LOG_CONTAINER_DEBUG_INFO, false);
    conf.setInt(YarnConfiguration.DEBUG_NM_DELETE_DELAY_SEC, 0);
    conf.setBoolean(YarnConfiguration.NM_RECOVERY_ENABLED, true);
    conf.setBoolean(YarnConfiguration.NM_RECOVERY_SUPERVISED, true);
    conf.set(YarnConfiguration.NM_RECOVERY_DIR, folder.resolve("recovery").toString());
    String service = ShuffleHandler.MAPREDUCE_SHUFFLE_SERVICEID;
    conf.set(YarnConfiguration.NM_AUX_SERVICES, service);
    conf.set(String.format(YarnConfiguration.NM_AUX_SERVICE_FMT, service), kind.shuffleHandler());
    conf.setInt(ShuffleHandler.SHUFFLE_PORT_CONFIG_KEY, shufflePort);
    kind.settings().forEach(conf::set);
  }

  /** Starts the merge process and the NodeManager; returns when the node takes work. */
  void start() throws Exception {
    if (kind.mergeProcess()) {
      merges = MergeProcess.start(folder.resolve("merges.log"), localDir());
      conf.set(Keys.SOCKET, merges.socket().toString());
    }
    startNodeManager();
  }

  /** Starts the NodeManager, which was stopped or killed, again. */
  void startNodeManager() throws Exception {
    if (kind.ownJvm()) {
      outside = launch();
    } else {
      inside = new NodeManager();
      inside.init(new YarnConfiguration(conf));
      inside.start();
    }
    Wait.until("the node runs", 60, () -> state() == NodeState.RUNNING && shuffleListens());
  }

  private Process launch() throws IOException {
    Path confDir = Files.createDirectories(folder.resolve("conf"));
    // The settings of the shuffle service belong to MapReduce, whose files override YARN's.
    for (String file : List.of("yarn-site.xml", "mapred-site.xml")) {
      try (OutputStream out = Files.newOutputStream(confDir.resolve(file))) {
        conf.writeXml(out);
      }
    }
    Path log = folder.resolve("nodemanager.log");
    ProcessBuilder builder =
        new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-Xmx256m",
            "-XX:TieredStopAtLevel=1",
            "--add-opens=java.base/java.lang=ALL-UNNAMED",
            NodeManager.class.getName());
    builder.environment().put("CLASSPATH", confDir + ":" + System.getProperty("java.class.path"));
    builder.redirectErrorStream(true);
    builder.redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile()));
    return builder.start();
  }

  /** Stops the NodeManager as an operator would. Its containers continue. */
  void stopNodeManager() {
    if (inside != null) {
      inside.stop();
      inside = null;
    }
  }

  /** Gives the NodeManager that starts next Hadoop's own shuffle service. */
  void rollBack() {
    conf.set(
        String.format(
            YarnConfiguration.NM_AUX_SERVICE_FMT, ShuffleHandler.MAPREDUCE_SHUFFLE_SERVICEID),
        ShuffleHandler.class.getName());
  }

  /** Kills the NodeManager's process. */
  void killNodeManager() throws InterruptedException {
    outside.destroyForcibly();
    outside.waitFor(10, TimeUnit.SECONDS);
    outside = null;
  }

  /** The state of the node in the ResourceManager, which may know it by any name of this host. */
  NodeState state() {
    return cluster.resourceManager().getRMContext().getRMNodes().values().stream()
        .filter(node -> node.getNodeID().getPort() == port)
        .map(RMNode::getState)
        .findFirst()
        .orElse(NodeState.NEW);
  }

  private boolean shuffleListens() {
    try (var socket = new java.net.Socket("localhost", shufflePort)) {
      return socket.isConnected();
    } catch (IOException e) {
      return false;
    }
  }

  int shufflePort() {
    return shufflePort;
  }

  Kind kind() {
    return kind;
  }

  Path localDir() {
    return kind.disk().orElse(folder).resolve("local");
  }

  Optional<MergeProcess> merges() {
    return Optional.ofNullable(merges);
  }

  /** The process of the NodeManager, if it has its own. */
  Optional<Process> process() {
    return Optional.ofNullable(outside);
  }

  /** The files of jobs, of their maps and reducers, in the local dir. */
  List<Path> jobFiles() throws IOException {
    List<Path> found = new ArrayList<>();
    Path users = localDir().resolve("usercache");
    if (!Files.isDirectory(users)) {
      return found;
    }
    try (Stream<Path> all = Files.walk(users)) {
      all.filter(path -> path.toString().contains("/appcache/"))
          .filter(Files::isRegularFile)
          .forEach(found::add);
    } catch (UncheckedIOException e) {
      // A folder was removed while it was listed: try again.
      return jobFiles();
    }
    return found;
  }

  /** Ends all processes. The logs of containers stay, for the analysis of a failure. */
  @Override
  public void close() throws IOException {
    if (outside != null) {
      outside.destroy();
      outside.onExit().join();
    }
    if (merges != null) {
      merges.close();
    }
    // A NodeManager waits ten seconds for log files that it would delete much later.
    Thread closer = new Thread(this::stopAndDelete, "closer of " + localDir());
    closer.setDaemon(true);
    closer.start();
  }

  private void stopAndDelete() {
    stopNodeManager();
    try {
      ClusterUnderTest.delete(localDir());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
