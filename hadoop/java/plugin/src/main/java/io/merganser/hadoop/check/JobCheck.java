package io.merganser.hadoop.check;

import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.nativemerge.NativeLibrary;
import io.merganser.hadoop.node.MapredNodeInputFormat;
import io.merganser.hadoop.node.NodeInputFormat;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.DeferredMapOutputBuffer;
import org.apache.hadoop.mapred.MapTask;
import org.apache.hadoop.mapred.NodeMapOutput;
import org.apache.hadoop.mapreduce.CryptoUtils;
import org.apache.hadoop.mapreduce.MRConfig;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.task.reduce.ActiveShuffle;
import org.apache.hadoop.mapreduce.task.reduce.Shuffle;

/** Checks the settings of jobs that are submitted from this node. */
final class JobCheck {
  private static final String CONSUMER = MRConfig.SHUFFLE_CONSUMER_PLUGIN;

  private static final String OLD_INPUT_FORMAT = "mapred.input.format.class";

  /** The settings that name an input format. */
  private static final List<String> INPUT_FORMATS =
      List.of(MRJobConfig.INPUT_FORMAT_CLASS_ATTR, OLD_INPUT_FORMAT, Keys.NODE_INPUT_FORMAT);

  /** The input formats for lines. */
  private static final List<String> LINES =
      List.of(
          org.apache.hadoop.mapreduce.lib.input.TextInputFormat.class.getName(),
          org.apache.hadoop.mapred.TextInputFormat.class.getName());

  /** Bytes of a record's metadata in the sort buffer. */
  private static final int META_BYTES = 16;

  private final Configuration conf;
  private final List<Finding> findings;

  /**
   * @param findings where the findings are added
   */
  JobCheck(Configuration conf, List<Finding> findings) {
    this.conf = conf;
    this.findings = findings;
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
    } else if (!begins(names, DeferredMapOutputBuffer.class.getName())) {
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

  /** Whether a collector is first, or the first after the one for maps on the node. */
  private static boolean begins(String[] names, String collector) {
    int first = names[0].equals(NodeMapOutput.class.getName()) ? 1 : 0;
    return first < names.length && names[first].equals(collector);
  }

  void mapsOnNode() {
    String format = conf.getTrimmed(MRJobConfig.INPUT_FORMAT_CLASS_ATTR, "");
    String oldFormat = conf.getTrimmed(OLD_INPUT_FORMAT, "");
    boolean missing = false;
    for (String key : INPUT_FORMATS) {
      String name = conf.getTrimmed(key, "");
      if (!name.isEmpty() && firstUnknown(name).isPresent()) {
        missing = true;
        findings.add(
            Finding.error(
                "node", key + " is " + name + ", which doesn't exist: jobs that read by it fail."));
      }
    }
    if (missing) {
      return;
    }
    boolean asks =
        format.equals(NodeInputFormat.class.getName())
            || oldFormat.equals(MapredNodeInputFormat.class.getName());
    String[] names = conf.getTrimmedStrings(MRJobConfig.MAP_OUTPUT_COLLECTOR_CLASS_ATTR);
    boolean collects = names.length > 0 && names[0].equals(NodeMapOutput.class.getName());
    if (asks && !collects) {
      findings.add(
          Finding.warning(
              "node",
              "Jobs read by "
                  + NodeInputFormat.class.getName()
                  + ", but "
                  + MRJobConfig.MAP_OUTPUT_COLLECTOR_CLASS_ATTR
                  + " doesn't begin with "
                  + NodeMapOutput.class.getName()
                  + ": all maps run in their tasks."));
    } else if (asks && !conf.getBoolean(Keys.NODE_MAP, Keys.DEFAULT_NODE_MAP)) {
      findings.add(
          Finding.warning("node", Keys.NODE_MAP + " is false: all maps run in their tasks."));
    } else if (asks && !LINES.contains(conf.getTrimmed(Keys.NODE_INPUT_FORMAT, LINES.get(0)))) {
      findings.add(
          Finding.warning(
              "node",
              Keys.NODE_INPUT_FORMAT
                  + " is "
                  + conf.getTrimmed(Keys.NODE_INPUT_FORMAT)
                  + ", not the input format for lines: all maps run in their tasks."));
    } else if (asks) {
      findings.add(Finding.ok("node", "Maps of jobs submitted from here may run on the node."));
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

  /** Estimates the spills of a map that reads one block and writes as much as it reads. */
  void spills() {
    long block = conf.getLongBytes("dfs.blocksize", 128L << 20);
    long buffer = (long) conf.getInt(MRJobConfig.IO_SORT_MB, MRJobConfig.DEFAULT_IO_SORT_MB) << 20;
    double share = conf.getFloat(MRJobConfig.MAP_SORT_SPILL_PERCENT, 0.8f);
    long small = spills(block, 100, (long) (buffer * share));
    long large = spills(block, 4096, (long) (buffer * share));
    String sentence =
        String.format(
            "A map that writes a block of %d MiB makes %d spills of 100-byte records and %d of"
                + " 4 KiB records, with %s at %d.",
            block >> 20, small, large, MRJobConfig.IO_SORT_MB, buffer >> 20);
    findings.add(
        large < 2
            ? Finding.note(
                "spills",
                sentence + " One spill is never written twice, so nothing is saved there.")
            : Finding.ok("spills", sentence));
  }

  /** The spills of a map's output; the sort buffer also holds the metadata of each record. */
  static long spills(long bytes, long recordBytes, long spillBytes) {
    long used = bytes + META_BYTES * (bytes / recordBytes);
    return Math.max(1, (used + spillBytes - 1) / spillBytes);
  }
}
