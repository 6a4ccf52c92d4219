package io.merganser.hadoop.cluster;

import org.junit.jupiter.api.Tag;

/** The same where the NodeManager merges. */
@Tag("slow")
class DamagedSpillsInJavaTest extends DamagedSpillsTest {
  @Override
  Node.Kind kind() {
    return Node.Kind.JAVA;
  }
}
