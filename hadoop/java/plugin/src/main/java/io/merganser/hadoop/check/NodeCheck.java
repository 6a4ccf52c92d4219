package io.merganser.hadoop.check;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.util.VersionInfo;
import org.apache.hadoop.yarn.conf.YarnConfiguration;

/**
 * The command {@code yarn jar merganser-hadoop.jar check [--json]}, which checks a node as the
 * NodeManager and its tasks see it. Run it on the node, as the NodeManager's user and with its
 * configuration.
 *
 * <p>It prints a line for each finding. Its exit status is 0 if nothing is wrong, 1 if something
 * doesn't work, and 2 if it was called wrongly.
 */
public final class NodeCheck {
  private final Configuration conf;

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
    // Else the configuration would not have the folders of the DataNode.
    HdfsConfiguration.init();
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
    List<Finding> findings = new ArrayList<>();
    InstallationCheck installation = new InstallationCheck(conf, findings);
    installation.versions(VersionInfo.getVersion(), Runtime.version().feature());
    installation.jar(Configuration.class.getClassLoader());
    installation.auxiliaryService();
    installation.localDirs();
    ProcessCheck processes = new ProcessCheck(conf, findings);
    processes.mergeProcess();
    processes.node();
    JobCheck jobs = new JobCheck(conf, findings);
    jobs.collector();
    jobs.mapsOnNode();
    jobs.consumer();
    jobs.nativeLibrary();
    jobs.intermediateData();
    jobs.thresholds();
    jobs.spills();
    return findings;
  }
}
