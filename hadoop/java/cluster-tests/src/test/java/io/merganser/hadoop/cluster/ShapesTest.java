package io.merganser.hadoop.cluster;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * One job of each shape on a cluster of two nodes with our service, one without a merge process.
 * The output must be stock Hadoop's, and the map outputs must be treated as the shape says.
 */
class ShapesTest {
  private static ClusterUnderTest cluster;
  private static Runner runner;

  @BeforeAll
  static void start() throws Exception {
    Path folder = ClusterUnderTest.folder("shapes");
    runner = new Runner(folder);
    cluster = new ClusterUnderTest(folder.resolve("cluster"));
    cluster.addNode(Node.Kind.best());
    cluster.addNode(Node.Kind.JAVA);
  }

  @AfterAll
  static void stop() throws Exception {
    try {
      Leaks.assertNone(cluster);
    } finally {
      cluster.close();
      runner.close();
    }
  }

  static List<Shape> shapes() {
    return Shape.often();
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("shapes")
  @Execution(ExecutionMode.CONCURRENT)
  void runs(Shape shape) throws Exception {
    ShapeCheck.active(cluster, runner, shape);
  }
}
