package io.merganser.hadoop.node;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.merganser.hadoop.node.NodeProgram.Combine;
import io.merganser.hadoop.node.NodeProgram.Type;
import java.io.IOException;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Test;

/** The bytes that the node reads; its own tests pin the same ones. */
class NodeRequestTest {
  private static NodeRequest.Map map(String arguments, byte[] tail) {
    return new NodeRequest.Map(
        "attempt_1",
        new NodeProgram("grep", arguments, Type.TEXT, Type.LONG, Combine.SUM),
        new FileSlice(new Path("hdfs://host/file"), 256, 16),
        new SplitBlocks(
            "BP-1", List.of(new SplitBlocks.Range(0x40000001, 1001, 512, 256, 16)), 275),
        new LineTail(tail, true),
        Optional.of(new byte[] {'|'}),
        Integer.MAX_VALUE,
        7,
        16 << 20,
        1000);
  }

  @Test
  void requestsArePinned() throws IOException {
    String map =
        "4d47484e 0001 0001 0000007d" // MGHN, version, kind, length
            + "0009 617474656d70745f31 01 0004 67726570 0002 7b7d 0004 42502d31"
            + "00000001"
            + "0000000040000001 00000000000003e9"
            + "0000000000000200 0000000000000100 0000000000000010"
            + "0000000000000100 0000000000000110"
            + "00000003 63640a 01 0001 7c 7fffffff 00000007"
            + "01 01 01 03 01 00"
            + "0000000001000000 000003e8";
    assertEquals(
        map.replace(" ", ""),
        HexFormat.of().formatHex(NodeRequest.map(map("{}", new byte[] {'c', 'd', '\n'})).array()));
    assertEquals("4d47484e0001000200000000", HexFormat.of().formatHex(NodeRequest.hello().array()));
  }

  @Test
  void aRequestThatIsTooLongIsNotSent() {
    assertThrows(IOException.class, () -> NodeRequest.map(map("x".repeat(65_536), new byte[0])));
    assertThrows(IOException.class, () -> NodeRequest.map(map("{}", new byte[5 << 20])));
  }
}
