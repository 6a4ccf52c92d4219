package io.merganser.hadoop.check;

import java.io.IOException;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.ActiveShuffleHandler;
import org.apache.hadoop.mapred.ShuffleHandler;
import org.apache.hadoop.yarn.conf.YarnConfiguration;

/** Checks the installation of a node: versions, the jar, the shuffle service, the local dirs. */
final class InstallationCheck {
  private static final String AUX_SERVICE_CLASS =
      String.format(
          YarnConfiguration.NM_AUX_SERVICE_FMT, ShuffleHandler.MAPREDUCE_SHUFFLE_SERVICEID);
  private static final String AUX_SERVICE_CLASSPATH =
      String.format(
          YarnConfiguration.NM_AUX_SERVICES_CLASSPATH, ShuffleHandler.MAPREDUCE_SHUFFLE_SERVICEID);
  private static final String HADOOP_VERSION = "3.4.";
  private static final int JAVA_VERSION = 17;

  private final Configuration conf;
  private final List<Finding> findings;

  /**
   * @param findings where the findings are added
   */
  InstallationCheck(Configuration conf, List<Finding> findings) {
    this.conf = conf;
    this.findings = findings;
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

  /** Checks that the jar is once on the class path of Hadoop's own classes. */
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
                  + " times, so it is chance which version runs; keep one of "
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
    List<Path> dirs = localDirsOf(conf);
    if (dirs.isEmpty()) {
      findings.add(
          Finding.error("local-dirs", YarnConfiguration.NM_LOCAL_DIRS + " names no directory."));
    }
    for (Path path : dirs) {
      String wrong = null;
      if (!Files.exists(path)) {
        wrong = "does not exist";
      } else if (!Files.isDirectory(path)) {
        wrong = "is not a directory";
      } else if (!Files.isWritable(path) || !Files.isReadable(path) || !Files.isExecutable(path)) {
        wrong =
            "can't be read and written by "
                + System.getProperty("user.name")
                + ", the user of this check";
      }
      findings.add(
          wrong == null
              ? Finding.ok("local-dirs", path + " can be read and written.")
              : Finding.error("local-dirs", path + " " + wrong + "."));
    }
  }

  /** The local dirs in the configuration, as paths. */
  static List<Path> localDirsOf(Configuration conf) {
    return Arrays.stream(conf.getTrimmedStrings(YarnConfiguration.NM_LOCAL_DIRS))
        .map(dir -> Path.of(new org.apache.hadoop.fs.Path(dir).toUri().getPath()))
        .toList();
  }
}
