package io.merganser.hadoop.check;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.nativemerge.NativeLibrary;
import java.io.IOException;
import java.io.PrintStream;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.ActiveShuffleHandler;
import org.apache.hadoop.mapred.DeferredMapOutputBuffer;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.MapTask;
import org.apache.hadoop.mapred.ShuffleHandler;
import org.apache.hadoop.mapreduce.CryptoUtils;
import org.apache.hadoop.mapreduce.MRConfig;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.task.reduce.ActiveShuffle;
import org.apache.hadoop.mapreduce.task.reduce.Shuffle;
import org.apache.hadoop.util.VersionInfo;
import org.apache.hadoop.yarn.conf.YarnConfiguration;

/**
 * Looks at a node as the NodeManager and its tasks would: {@code yarn jar merganser-hadoop.jar
 * check [--json]}, to be run on the node, as the NodeManager's user and with its configuration.
 *
 * <p>Prints a line for each thing that was looked at; exits with 0 if nothing is wrong, 1 if
 * something doesn't work, 2 if it was called wrongly.
 */
public final class NodeCheck {
  private static final String AUX_SERVICE_CLASS =
      String.format(
          YarnConfiguration.NM_AUX_SERVICE_FMT, ShuffleHandler.MAPREDUCE_SHUFFLE_SERVICEID);
  private static final String AUX_SERVICE_CLASSPATH =
      String.format(
          YarnConfiguration.NM_AUX_SERVICES_CLASSPATH, ShuffleHandler.MAPREDUCE_SHUFFLE_SERVICEID);
  private static final String CONSUMER = MRConfig.SHUFFLE_CONSUMER_PLUGIN;
  private static final String HADOOP_VERSION = "3.4.";
  private static final int JAVA_VERSION = 17;

  /** The longest path that the system takes for a Unix socket, in bytes. */
  private static final int SOCKET_PATH_MAX = 107;

  /** Bytes of a record's metadata in the sort buffer. */
  private static final int META_BYTES = 16;

  private final Configuration conf;
  private final List<Finding> findings = new ArrayList<>();

  NodeCheck(Configuration conf) {
    this.conf = conf;
  }

  /** Runs the command. */
  public static void main(String[] arguments) {
    System.exit(run(arguments, System.out, System.err));
  }

  static int run(String[] arguments, PrintStream out, PrintStream err) {
    List<String> words = new ArrayList<>(List.of(arguments));
    if (!words.isEmpty() && words.get(0).equals("check")) {
      words.remove(0);
    }
    boolean json = words.remove("--json");
    if (!words.isEmpty()) {
      err.println(words.get(0) + ": usage: yarn jar merganser-hadoop.jar check [--json]");
      return 2;
    }
    List<Finding> findings = new NodeCheck(new YarnConfiguration(new JobConf())).all();
    boolean wrong = findings.stream().anyMatch(f -> f.level() == Finding.Level.ERROR);
    if (json) {
      printJson(findings, wrong, out);
    } else {
      findings.forEach(out::println);
      out.println(wrong ? "This node is not ready: see the errors." : "This node is ready.");
    }
    return wrong ? 1 : 0;
  }

  private static void printJson(List<Finding> findings, boolean wrong, PrintStream out) {
    List<Map<String, String>> list = new ArrayList<>();
    for (Finding finding : findings) {
      Map<String, String> entry = new LinkedHashMap<>();
      entry.put("level", finding.level().toString());
      entry.put("what", finding.what());
      entry.put("sentence", finding.sentence());
      list.add(entry);
    }
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("ready", !wrong);
    all.put("findings", list);
    try {
      out.println(new ObjectMapper().writerWithDefaultPrettyPrinter().writeValueAsString(all));
    } catch (IOException e) {
      throw new AssertionError("strings and lists are always JSON", e);
    }
  }

  List<Finding> all() {
    versions(VersionInfo.getVersion(), Runtime.version().feature());
    jar(Configuration.class.getClassLoader());
    auxiliaryService();
    localDirs();
    mergeProcess();
    collector();
    consumer();
    nativeLibrary();
    intermediateData();
    thresholds();
    spills();
    return findings();
  }

  /** What was found so far. */
  List<Finding> findings() {
    return Collections.unmodifiableList(findings);
  }

  void versions(String hadoop, int java) {
    findings.add(
        hadoop.startsWith(HADOOP_VERSION)
            ? Finding.ok("hadoop", "Hadoop " + hadoop + ".")
            : Finding.warning(
                "hadoop",
                "Hadoop "
                    + hadoop
                    + ", this plugin is made for and tested with "
                    + HADOOP_VERSION
                    + "2: try a job on one node first."));
    findings.add(
        java >= JAVA_VERSION
            ? Finding.ok("java", "Java " + java + ".")
            : Finding.error(
                "java",
                "Java "
                    + java
                    + " can't load the plugin: run NodeManagers and tasks with Java "
                    + JAVA_VERSION
                    + " or newer."));
  }

  /** The jar must be where Hadoop's own classes are loaded from, and only once. */
  void jar(ClassLoader hadoop) {
    String resource = ActiveShuffleHandler.class.getName().replace('.', '/') + ".class";
    List<URL> found;
    try {
      found = Collections.list(hadoop.getResources(resource));
    } catch (IOException e) {
      findings.add(Finding.error("jar", "Hadoop's class path can't be read: " + e.getMessage()));
      return;
    }
    if (found.isEmpty()) {
      findings.add(
          Finding.error(
              "jar",
              "The jar is not on Hadoop's own class path: copy merganser-hadoop.jar to"
                  + " share/hadoop/mapreduce of this node, then restart its NodeManager."));
    } else if (found.size() > 1) {
      findings.add(
          Finding.error(
              "jar",
              "The jar is on Hadoop's class path "
                  + found.size()
                  + " times, so which version runs is chance; keep one of "
                  + found
                  + "."));
    } else {
      findings.add(Finding.ok("jar", "Loaded from " + found.get(0) + "."));
    }
  }

  void auxiliaryService() {
    String name = ShuffleHandler.MAPREDUCE_SHUFFLE_SERVICEID;
    List<String> services =
        Arrays.asList(conf.getTrimmedStrings(YarnConfiguration.NM_AUX_SERVICES));
    String service = conf.getTrimmed(AUX_SERVICE_CLASS, "");
    if (conf.getBoolean(
        YarnConfiguration.NM_AUX_SERVICES_MANIFEST_ENABLED,
        YarnConfiguration.DEFAULT_NM_AUX_SERVICES_MANIFEST_ENABLED)) {
      findings.add(
          Finding.warning(
              "service",
              YarnConfiguration.NM_AUX_SERVICES_MANIFEST_ENABLED
                  + " is true: the NodeManager takes its services from a file that this check"
                  + " doesn't read; "
                  + name
                  + " must be of class "
                  + ActiveShuffleHandler.class.getName()
                  + " there."));
    } else if (!services.contains(name)) {
      findings.add(
          Finding.error(
              "service",
              YarnConfiguration.NM_AUX_SERVICES + " lacks " + name + ": no job can shuffle."));
    } else if (!service.equals(ActiveShuffleHandler.class.getName())) {
      findings.add(
          Finding.warning(
              "service",
              AUX_SERVICE_CLASS
                  + " is "
                  + (service.isEmpty() ? "not set" : service)
                  + ", so map tasks on this node merge as in stock Hadoop; set it to "
                  + ActiveShuffleHandler.class.getName()
                  + " and restart the NodeManager."));
    } else if (!conf.getTrimmed(AUX_SERVICE_CLASSPATH, "").isEmpty()) {
      findings.add(
          Finding.error(
              "service",
              AUX_SERVICE_CLASSPATH
                  + " is set: a service with a class path of its own can't extend Hadoop's; remove"
                  + " it and put the jar on the NodeManager's class path."));
    } else {
      findings.add(Finding.ok("service", name + " is " + service + "."));
    }
  }

  void localDirs() {
    String[] dirs = conf.getTrimmedStrings(YarnConfiguration.NM_LOCAL_DIRS);
    if (dirs.length == 0) {
      findings.add(
          Finding.error("local-dirs", YarnConfiguration.NM_LOCAL_DIRS + " names no directory."));
    }
    for (String dir : dirs) {
      Path path = local(dir);
      String wrong = null;
      if (!Files.exists(path)) {
        wrong = "does not exist";
      } else if (!Files.isDirectory(path)) {
        wrong = "is not a directory";
      } else if (!Files.isWritable(path) || !Files.isReadable(path) || !Files.isExecutable(path)) {
        wrong =
            "can't be read and written by " + System.getProperty("user.name") + ", who runs this";
      }
      findings.add(
          wrong == null
              ? Finding.ok("local-dirs", path + " can be read and written.")
              : Finding.error("local-dirs", path + " " + wrong + "."));
    }
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
      for (String dir : conf.getTrimmedStrings(YarnConfiguration.NM_LOCAL_DIRS)) {
        String why = probe.whyNotReadable(local(dir));
        findings.add(
            why.isEmpty()
                ? Finding.ok("process", "It may read below " + local(dir) + ".")
                : Finding.error(
                    "process",
                    "It can't read below "
                        + local(dir)
                        + " ("
                        + why
                        + "): start it with --local-dir "
                        + local(dir)
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

  void collector() {
    String[] names =
        conf.getTrimmedStrings(
            MRJobConfig.MAP_OUTPUT_COLLECTOR_CLASS_ATTR, MapTask.MapOutputBuffer.class.getName());
    Optional<String> unknown = firstUnknown(names);
    if (unknown.isPresent()) {
      findings.add(
          Finding.error(
              "map-side",
              MRJobConfig.MAP_OUTPUT_COLLECTOR_CLASS_ATTR
                  + " names "
                  + unknown.get()
                  + ", which doesn't exist: every map task fails."));
    } else if (!names[0].equals(DeferredMapOutputBuffer.class.getName())) {
      findings.add(
          Finding.warning(
              "map-side",
              MRJobConfig.MAP_OUTPUT_COLLECTOR_CLASS_ATTR
                  + " begins with "
                  + names[0]
                  + ": jobs submitted from here merge as in stock Hadoop; put "
                  + DeferredMapOutputBuffer.class.getName()
                  + " first."));
    } else if (!conf.getBoolean(Keys.DEFER, Keys.DEFAULT_DEFER)) {
      findings.add(
          Finding.warning(
              "map-side", Keys.DEFER + " is false: map tasks merge as in stock Hadoop."));
    } else {
      findings.add(Finding.ok("map-side", "Map tasks of jobs submitted from here may defer."));
    }
    String archive = conf.getTrimmed(MRJobConfig.MAPREDUCE_APPLICATION_FRAMEWORK_PATH, "");
    if (!archive.isEmpty()) {
      findings.add(
          Finding.warning(
              "map-side",
              "Tasks run from "
                  + archive
                  + ", not from this node's Hadoop: the jar must be in that archive, too."));
    }
  }

  void consumer() {
    String name = conf.getTrimmed(CONSUMER, Shuffle.class.getName());
    if (firstUnknown(name).isPresent()) {
      findings.add(
          Finding.error(
              "reduce-side",
              CONSUMER + " is " + name + ", which doesn't exist: every reduce task fails."));
    } else if (name.equals(ActiveShuffle.class.getName())) {
      findings.add(Finding.ok("reduce-side", "Reduce tasks merge what they fetched once."));
    } else {
      findings.add(
          Finding.note("reduce-side", CONSUMER + " is " + name + ": reduce tasks merge by it."));
    }
  }

  private Optional<String> firstUnknown(String... names) {
    return Arrays.stream(names).filter(n -> conf.getClassByNameOrNull(n) == null).findFirst();
  }

  void nativeLibrary() {
    if (!conf.getBoolean(Keys.REDUCE_NATIVE, Keys.DEFAULT_REDUCE_NATIVE)) {
      findings.add(
          Finding.note("native", Keys.REDUCE_NATIVE + " is false: reduce tasks merge in Java."));
      return;
    }
    Optional<String> why = NativeLibrary.whyNot();
    findings.add(
        why.isEmpty()
            ? Finding.ok("native", "The native library loads.")
            : Finding.warning("native", "Reduce tasks merge in Java: " + why.get() + "."));
  }

  void intermediateData() {
    if (conf.getBoolean(MRJobConfig.MAP_OUTPUT_COMPRESS, false)) {
      findings.add(
          Finding.warning(
              "data",
              MRJobConfig.MAP_OUTPUT_COMPRESS
                  + " is true: map tasks merge as in stock Hadoop, since the length of a"
                  + " compressed merge isn't known before it."));
    }
    if (CryptoUtils.isEncryptedSpillEnabled(conf)) {
      findings.add(
          Finding.warning(
              "data",
              MRJobConfig.MR_ENCRYPTED_INTERMEDIATE_DATA
                  + " is true: map tasks merge as in stock Hadoop, since the node has no key."));
    }
  }

  void thresholds() {
    findings.add(
        Finding.note(
            "thresholds",
            String.format(
                "A map task defers with %d to %d spills, records of %d bytes and segments of %d"
                    + " bytes or more on average.",
                Math.max(2, conf.getInt(Keys.MIN_SPILLS, Keys.DEFAULT_MIN_SPILLS)),
                conf.getInt(Keys.MAX_SPILLS, Keys.DEFAULT_MAX_SPILLS),
                conf.getLong(Keys.MIN_RECORD_BYTES, Keys.DEFAULT_MIN_RECORD_BYTES),
                conf.getLong(Keys.MIN_SEGMENT_BYTES, Keys.DEFAULT_MIN_SEGMENT_BYTES))));
  }

  /** What a map that puts out as much as it reads would do with a block. */
  void spills() {
    long block = conf.getLongBytes("dfs.blocksize", 128L << 20);
    long buffer = (long) conf.getInt(MRJobConfig.IO_SORT_MB, MRJobConfig.DEFAULT_IO_SORT_MB) << 20;
    double share = conf.getFloat(MRJobConfig.MAP_SORT_SPILL_PERCENT, 0.8f);
    long small = spills(block, 100, (long) (buffer * share));
    long large = spills(block, 4096, (long) (buffer * share));
    String sentence =
        String.format(
            "A map that puts out a block of %d MiB makes %d spills of 100-byte records and %d of"
                + " 4 KiB records, with %s at %d.",
            block >> 20, small, large, MRJobConfig.IO_SORT_MB, buffer >> 20);
    findings.add(
        large < 2
            ? Finding.note(
                "spills",
                sentence + " One spill is never written twice, so nothing is saved there.")
            : Finding.ok("spills", sentence));
  }

  /** Spills of a map's output; the buffer also holds the metadata of each record. */
  static long spills(long bytes, long recordBytes, long spillBytes) {
    long used = bytes + META_BYTES * (bytes / recordBytes);
    return Math.max(1, (used + spillBytes - 1) / spillBytes);
  }

  private static Path local(String dir) {
    return Path.of(new org.apache.hadoop.fs.Path(dir).toUri().getPath());
  }
}
