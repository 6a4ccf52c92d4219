package io.merganser.hadoop.cluster;

import org.junit.jupiter.api.Tag;

/** {@link DamagedSpillsTest} with a NodeManager that merges in Java. */
@Tag("slow")
class DamagedSpillsInJavaTest extends DamagedSpillsTest {
  @Override
  Node.Kind kind() {
    return Node.Kind.JAVA;
  }
}
