package io.merganser.workloads;

import java.util.Arrays;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/** Runs one of the jobs by name. */
public final class Workloads {
  private static final Map<String, Supplier<Tool>> TOOLS =
      Map.of(
          "generate", Generate::new,
          "record-sort", RecordSort::new,
          "join", RepartitionJoin::new,
          "inverted-index", InvertedIndex::new,
          "checksum", Checksum::new);

  private Workloads() {}

  /**
   * Runs the job that the first argument names, and ends with its exit code.
   *
   * @param args the name, Hadoop's generic options, and the arguments of the job
   */
  public static void main(String[] args) throws Exception {
    Supplier<Tool> tool = args.length == 0 ? null : TOOLS.get(args[0]);
    if (tool == null) {
      System.err.println(
          "Name one of " + String.join(", ", TOOLS.keySet().stream().sorted().toList()));
      System.exit(2);
      return;
    }
    String[] rest = Arrays.copyOfRange(args, 1, args.length);
    System.exit(ToolRunner.run(new Configuration(), tool.get(), rest));
  }
}
