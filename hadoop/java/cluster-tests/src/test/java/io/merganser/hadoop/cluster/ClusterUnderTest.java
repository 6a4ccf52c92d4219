package io.merganser.hadoop.cluster;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CommonConfigurationKeysPublic;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.MRConfig;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer;
import org.apache.hadoop.mapreduce.v2.jobhistory.JHAdminConfig;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceManager;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler;

/**
 * A YARN cluster over the local file system: a ResourceManager and a job history server in this
 * JVM, and {@link Node}s that tests add, stop, kill and start again.
 *
 * <p>The ResourceManager is that of Hadoop's own mini cluster. The mini cluster's NodeManagers are
 * not used, because they all share one configuration.
 */
final class ClusterUnderTest implements AutoCloseable {
  private static final Map<String, Integer> FOLDERS = new ConcurrentHashMap<>();

  private final Path folder;
  private final MiniYARNCluster yarn;
  private final JobHistoryServer history;
  private final List<Node> nodes = new ArrayList<>();

  /** Starts the daemons. They and the jobs write everything below {@code folder}. */
  ClusterUnderTest(Path folder) throws IOException {
    this.folder = folder;
    YarnConfiguration conf = new YarnConfiguration();
    conf.set(CommonConfigurationKeysPublic.FS_DEFAULT_NAME_KEY, "file:///");
    conf.setBoolean(YarnConfiguration.IS_MINI_YARN_CLUSTER, true);
    conf.setClass(YarnConfiguration.RM_SCHEDULER, FifoScheduler.class, Object.class);
    conf.setInt(YarnConfiguration.RM_SCHEDULER_MINIMUM_ALLOCATION_MB, 128);
    conf.setInt(YarnConfiguration.RM_NM_HEARTBEAT_INTERVAL_MS, 100);
    // A NodeManager that was killed counts as lost after this time, unless it comes back.
    conf.setInt(YarnConfiguration.RM_NM_EXPIRY_INTERVAL_MS, 20_000);
    // Several nodes of one cluster have the same host name here.
    conf.setBoolean(MRJobConfig.MR_AM_JOB_NODE_BLACKLISTING_ENABLE, false);
    // The name of a folder, which no other cluster may use.
    yarn = new MiniYARNCluster(folder.getParent().getFileName() + "-yarn", 0, 1, 1);
    yarn.init(conf);
    yarn.start();

    Configuration historyConf = new YarnConfiguration(yarn.getConfig());
    setJobHistory(historyConf);
    history = new JobHistoryServer();
    history.init(historyConf);
    history.start();
    jobs = new JobConf(historyConf);
    setJobs(jobs);
  }

  private final JobConf jobs;

  private void setJobHistory(Configuration conf) throws IOException {
    conf.set(MRJobConfig.MR_AM_STAGING_DIR, folder.resolve("staging").toString());
    conf.set(JHAdminConfig.MR_HISTORY_ADDRESS, "localhost:" + Ports.free());
    conf.set(JHAdminConfig.MR_HISTORY_WEBAPP_ADDRESS, "localhost:" + Ports.free());
    conf.set(JHAdminConfig.JHS_ADMIN_ADDRESS, "localhost:" + Ports.free());
    conf.set(
        JHAdminConfig.MR_HISTORY_INTERMEDIATE_DONE_DIR, folder.resolve("history/new").toString());
    conf.set(JHAdminConfig.MR_HISTORY_DONE_DIR, folder.resolve("history/done").toString());
  }

  private static void setJobs(JobConf conf) {
    conf.set(MRConfig.FRAMEWORK_NAME, MRConfig.YARN_FRAMEWORK_NAME);
    String java =
        "-Xmx160m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"
            + " --add-opens=java.base/java.lang=ALL-UNNAMED";
    conf.setInt(MRJobConfig.MR_AM_VMEM_MB, 256);
    conf.set(MRJobConfig.MR_AM_COMMAND_OPTS, java);
    conf.setInt(MRJobConfig.MAP_MEMORY_MB, 256);
    conf.setInt(MRJobConfig.REDUCE_MEMORY_MB, 256);
    conf.set(MRJobConfig.MAP_JAVA_OPTS, java);
    conf.set(MRJobConfig.REDUCE_JAVA_OPTS, java);
    // Small buffers, so that small inputs spill often.
    conf.setInt(MRJobConfig.IO_SORT_MB, 1);
    conf.setBoolean(MRJobConfig.MAP_SPECULATIVE, false);
    conf.setBoolean(MRJobConfig.REDUCE_SPECULATIVE, false);
    // All waits are short.
    conf.setInt(MRJobConfig.MR_AM_TO_RM_HEARTBEAT_INTERVAL_MS, 100);
    conf.setInt(Job.PROGRESS_MONITOR_POLL_INTERVAL_KEY, 100);
    conf.setInt(Job.COMPLETION_POLL_INTERVAL_KEY, 100);
    conf.setInt(MRJobConfig.SHUFFLE_FETCH_RETRY_INTERVAL_MS, 200);
    // A reducer that can't connect tries again after this time; the default is a minute.
    conf.setInt(MRJobConfig.SHUFFLE_CONNECT_TIMEOUT, 8000);
    // A reducer that could not fetch reports it and tries again soon.
    conf.setLong(MRJobConfig.TASK_PROGRESS_REPORT_INTERVAL, 1000);
    conf.setLong(MRJobConfig.MAX_SHUFFLE_FETCH_RETRY_DELAY, 2000);
  }

  /** Adds a NodeManager to the cluster and waits until it takes work. */
  Node addNode(Node.Kind kind) throws Exception {
    Node node = new Node(this, folder.resolve("node" + nodes.size()), kind);
    nodes.add(node);
    node.start();
    return node;
  }

  /** The settings of a job on this cluster that uses nothing of the plugin. */
  JobConf stockJob() {
    return new JobConf(jobs);
  }

  /** The settings of a job whose map tasks may defer their merge, and whose reducers merge once. */
  JobConf activeJob() {
    JobConf conf = stockJob();
    Active.use(conf);
    return conf;
  }

  /** The settings that all NodeManagers of this cluster share. */
  Configuration daemons() {
    return yarn.getConfig();
  }

  ResourceManager resourceManager() {
    return yarn.getResourceManager();
  }

  List<Node> nodes() {
    return List.copyOf(nodes);
  }

  Path folder() {
    return folder;
  }

  @Override
  public void close() throws IOException {
    for (Node node : nodes) {
      node.close();
    }
    history.stop();
    yarn.stop();
    delete(folder.resolve("staging"));
  }

  /** Makes an empty folder below that of the build, another one for each call in this JVM. */
  static Path folder(String name) throws IOException {
    int number = FOLDERS.merge(name, 1, Integer::sum);
    Path folder = Path.of("target", "clusters", name + "-" + number).toAbsolutePath();
    delete(folder);
    return Files.createDirectories(folder);
  }

  /** Removes {@code path} and everything below it. Files may vanish meanwhile. */
  static void delete(Path path) throws IOException {
    if (!Files.exists(path)) {
      return;
    }
    try (var all = Files.walk(path)) {
      for (Path each : all.sorted((a, b) -> b.compareTo(a)).toList()) {
        Files.deleteIfExists(each);
      }
    }
  }
}
