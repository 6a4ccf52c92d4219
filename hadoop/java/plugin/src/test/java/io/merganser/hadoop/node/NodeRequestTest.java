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
    return map(new NodeProgram("grep", arguments, Type.TEXT, Type.LONG, Combine.SUM), tail);
  }

  private static NodeRequest.Map map(NodeProgram program, byte[] tail) {
    return new NodeRequest.Map(
        "attempt_1",
        program,
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
    assertEquals(
        "4d47484e000300040000000101", HexFormat.of().formatHex(NodeRequest.state(true).array()));
    assertEquals(
        "4d47484e000300040000000100", HexFormat.of().formatHex(NodeRequest.state(false).array()));
  }

  /** A job's own program is named by the SHA-256 of its module, and the request has version 2. */
  @Test
  void requestsForProgramsOfJobsArePinned() throws IOException {
    var module = new NodeModule(new byte[] {0, 'a', 's', 'm'});
    var program =
        new NodeProgram("words.wasm", Optional.of(module), "{}", Type.TEXT, Type.LONG, Combine.SUM);
    String map = HexFormat.of().formatHex(NodeRequest.map(map(program, new byte[0])).array());
    String sha256 = "cd5d4935a48c0672cb06407bb443bc0087aff947c6b864bac886982c73b3027f";
    assertEquals("4d47484e0002000100000094", map.substring(0, 24));
    assertEquals(
        "000961747465" + "6d70745f31" + "02" + sha256 + "00027b7d", map.substring(24, 120));
    assertEquals(
        "4d47484e00020003000000040061736d",
        HexFormat.of().formatHex(NodeRequest.upload(module).array()));
  }

  @Test
  void aRequestThatIsTooLongIsNotSent() {
    assertThrows(IOException.class, () -> NodeRequest.map(map("x".repeat(65_536), new byte[0])));
    assertThrows(IOException.class, () -> NodeRequest.map(map("{}", new byte[5 << 20])));
  }
}
