package io.merganser.hadoop.cluster;

import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * All shapes, also the slow ones, each on clusters of one kind of node. Among them are stock jobs
 * on our nodes, whose results must not change.
 */
@Tag("slow")
@ParameterizedClass(name = "{0}")
@MethodSource("io.merganser.hadoop.cluster.Node$Kind#ours")
class EveryShapeTest {
  private static ClusterUnderTest cluster;
  private static Runner runner;

  @Parameter private Node.Kind kind;

  @BeforeParameterizedClassInvocation
  static void start(Node.Kind kind) throws Exception {
    Path folder = ClusterUnderTest.folder("every-shape");
    runner = new Runner(folder);
    cluster = new ClusterUnderTest(folder.resolve("cluster"));
    cluster.addNode(kind);
    cluster.addNode(kind);
  }

  @AfterParameterizedClassInvocation
  static void stop() throws Exception {
    try {
      Leaks.assertNone(cluster);
    } finally {
      cluster.close();
      runner.close();
    }
  }

  static List<Shape> shapes() {
    return Stream.concat(Shape.often().stream(), Shape.seldom().stream()).toList();
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("shapes")
  @Execution(ExecutionMode.CONCURRENT)
  void active(Shape shape) throws Exception {
    ShapeCheck.active(cluster, runner, shape);
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("shapes")
  @Execution(ExecutionMode.CONCURRENT)
  void stock(Shape shape) throws Exception {
    ShapeCheck.stock(cluster, runner, shape);
  }
}
