package io.merganser.hadoop.check;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.merganser.hadoop.check.Finding.Level;
import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.nativemerge.NativeLibrary;
import io.merganser.hadoop.node.FakeNode;
import io.merganser.hadoop.node.FakeNode.Conduct;
import io.merganser.hadoop.node.MapredNodeInputFormat;
import io.merganser.hadoop.node.NodeInputFormat;
import io.merganser.hadoop.node.NodeProbe.Folder;
import io.merganser.hadoop.node.NodeProbe.View;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.net.StandardProtocolFamily;
import java.net.URL;
import java.net.URLClassLoader;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.ActiveShuffleHandler;
import org.apache.hadoop.mapred.DeferredMapOutputBuffer;
import org.apache.hadoop.mapred.NodeMapOutput;
import org.apache.hadoop.mapreduce.task.reduce.ActiveShuffle;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class NodeCheckTest {
  private static final String SERVICE = "yarn.nodemanager.aux-services.mapreduce_shuffle.class";
  private static final String COLLECTOR = "mapreduce.job.map.output.collector.class";
  private static final String CONSUMER = "mapreduce.job.reduce.shuffle.consumer.plugin.class";

  @TempDir Path dir;
  private final Configuration conf = new Configuration(false);

  /** A node on which everything is as it should be. */
  @BeforeEach
  void configure() {
    conf.set("yarn.nodemanager.aux-services", "other,mapreduce_shuffle");
    conf.set(SERVICE, ActiveShuffleHandler.class.getName());
    conf.set("yarn.nodemanager.local-dirs", dir.toString());
    conf.set(COLLECTOR, DeferredMapOutputBuffer.class.getName());
    conf.set(CONSUMER, ActiveShuffle.class.getName());
  }

  @Test
  void aGoodNodeHasNoErrors() {
    List<Finding> findings = new NodeCheck(conf).all();
    assertTrue(findings.stream().noneMatch(f -> f.level() == Level.ERROR), findings.toString());
  }

  @Test
  void versions() {
    installation(c -> c.versions("3.4.2", 17), Level.OK, Level.OK);
    installation(c -> c.versions("3.5.0", 21), Level.WARNING, Level.OK);
    installation(c -> c.versions("3.4.1", 11), Level.OK, Level.ERROR);
  }

  @Test
  void theJarIsOnHadoopsClassPathOnce() throws IOException {
    URL classes = ActiveShuffleHandler.class.getProtectionDomain().getCodeSource().getLocation();
    assertSays(
        "Loaded from",
        installation(c -> c.jar(new URLClassLoader(new URL[] {classes}, null)), Level.OK));
    assertSays("copy", installation(c -> c.jar(new URLClassLoader(new URL[0], null)), Level.ERROR));
    Path copy = dir.resolve("copy/org/apache/hadoop/mapred/ActiveShuffleHandler.class");
    Files.createDirectories(copy.getParent());
    Files.createFile(copy);
    URL second = dir.resolve("copy").toUri().toURL();
    assertSays(
        "2 times",
        installation(
            c -> c.jar(new URLClassLoader(new URL[] {classes, second}, null)), Level.ERROR));
  }

  @Test
  void theServiceIsOurs() {
    installation(InstallationCheck::auxiliaryService, Level.OK);
    conf.set(SERVICE + "path", "/opt/jars/*");
    assertSays(
        "class path of its own", installation(InstallationCheck::auxiliaryService, Level.ERROR));
    conf.set(SERVICE, "org.apache.hadoop.mapred.ShuffleHandler");
    assertSays(
        "merge as in stock Hadoop",
        installation(InstallationCheck::auxiliaryService, Level.WARNING));
    conf.unset(SERVICE);
    assertSays("not set", installation(InstallationCheck::auxiliaryService, Level.WARNING));
    conf.set("yarn.nodemanager.aux-services", "other");
    assertSays(
        "lacks mapreduce_shuffle", installation(InstallationCheck::auxiliaryService, Level.ERROR));
    conf.setBoolean("yarn.nodemanager.aux-services.manifest.enabled", true);
    assertSays("doesn't read", installation(InstallationCheck::auxiliaryService, Level.WARNING));
  }

  @Test
  void localDirsAreThere() throws IOException {
    Path file = Files.createFile(dir.resolve("file"));
    conf.setStrings(
        "yarn.nodemanager.local-dirs", dir.toUri().toString(), dir + "/none", file.toString());
    List<Finding> found =
        installation(InstallationCheck::localDirs, Level.OK, Level.ERROR, Level.ERROR);
    assertTrue(found.get(1).sentence().contains("does not exist"));
    assertTrue(found.get(2).sentence().contains("is not a directory"));
    conf.unset("yarn.nodemanager.local-dirs");
    assertSays("names no directory", installation(InstallationCheck::localDirs, Level.ERROR));
  }

  @Test
  @SuppressWarnings("try") // The processes are only there to be asked.
  void theProcessAnswers() throws IOException {
    assertSays("not set", process(ProcessCheck::mergeProcess, Level.NOTE));
    Path socket = dir.resolve("s.sock");
    conf.set(Keys.SOCKET, socket.toString());
    assertSays("start merganser hadoop serve", process(ProcessCheck::mergeProcess, Level.ERROR));
    try (FakeProcess process = new FakeProcess(socket, 3, "gone")) {
      List<Finding> found = process(ProcessCheck::mergeProcess, Level.OK, Level.OK);
      assertTrue(found.get(0).sentence().contains("merganser 9.8.7 listens"));
      assertTrue(found.get(0).sentence().contains("2 merges now, 4096 bytes"));
    }
    Files.delete(socket);
    try (FakeProcess process = new FakeProcess(socket, 6, "it lies elsewhere")) {
      List<Finding> found = process(ProcessCheck::mergeProcess, Level.OK, Level.ERROR);
      assertTrue(
          found.get(1).sentence().contains("(it lies elsewhere): start it with --local-dir"));
    }
    assertSays(
        "Is merganser hadoop serve running", process(ProcessCheck::mergeProcess, Level.ERROR));
    Files.delete(socket);
    try (FakeProcess process = new FakeProcess(socket, -1, "")) {
      assertSays("hung up", process(ProcessCheck::mergeProcess, Level.ERROR));
    }
    conf.set(Keys.SOCKET, "relative.sock");
    assertSays("absolute path", process(ProcessCheck::mergeProcess, Level.ERROR));
    conf.set(Keys.SOCKET, "/" + "d".repeat(107));
    assertSays("absolute path", process(ProcessCheck::mergeProcess, Level.ERROR));
    conf.set("hadoop.security.authentication", "kerberos");
    assertSays("secure cluster", process(ProcessCheck::mergeProcess, Level.NOTE));
  }

  @Test
  @SuppressWarnings("try") // The processes are only there to be asked.
  void theNodeAnswers() throws IOException {
    assertSays("not set", process(ProcessCheck::node, Level.NOTE));
    Path socket = dir.resolve("n.sock");
    conf.set(Keys.NODE_SOCKET, socket.toString());
    assertSays("start merganser hadoop serve --hdfs", process(ProcessCheck::node, Level.ERROR));
    try (FakeNode node = new FakeNode(socket, dir.resolve("no-file"))) {
      List<Finding> found = process(ProcessCheck::node, Level.OK, Level.NOTE, Level.NOTE);
      assertSays("merganser 9.8.7 listens", found);
      assertSays("2 of at most 8 maps", found);
      assertTrue(found.get(1).sentence().contains("dfs.datanode.data.dir is not set"));
      assertEquals(
          "In 2 hours it has done 11 maps, and refused or failed 10"
              + " (BUSY 2, DAMAGED_BLOCK 1, PROTOCOL 7).",
          found.get(2).sentence());
      node.behave(Conduct.OLD, 0);
      found = process(ProcessCheck::node, Level.OK, Level.NOTE);
      assertTrue(found.get(1).sentence().contains("too old to say which folders"));
    }
    assertSays(
        "Is merganser hadoop serve --hdfs running", process(ProcessCheck::node, Level.ERROR));
    Files.delete(socket);
    try (FakeProcess process = new FakeProcess(socket, -1, "")) {
      assertSays(
          "Is merganser hadoop serve --hdfs running", process(ProcessCheck::node, Level.ERROR));
    }
    conf.set(Keys.NODE_SOCKET, "relative.sock");
    assertSays("absolute path", process(ProcessCheck::node, Level.ERROR));
    conf.set("hadoop.security.authentication", "kerberos");
    assertSays("secure cluster", process(ProcessCheck::node, Level.NOTE));
  }

  @Test
  void theFoldersOfTheNodeAreThoseOfTheDataNode() throws IOException {
    Path socket = dir.resolve("n.sock");
    conf.set(Keys.NODE_SOCKET, socket.toString());
    Path data = Files.createDirectory(dir.resolve("data"));
    Path link = Files.createSymbolicLink(dir.resolve("link"), data);
    String other = dir + "/other";
    conf.setStrings("dfs.datanode.data.dir", "[SSD]" + data.toUri(), "[DISK]" + other);
    try (FakeNode node = new FakeNode(socket, dir.resolve("no-file"))) {
      node.show(new Folder(View.READABLE, link.toString()), new Folder(View.READABLE, other));
      process(ProcessCheck::node, Level.OK, Level.OK, Level.OK, Level.NOTE);
      node.show(new Folder(View.READABLE, data.toString()));
      assertFolder("doesn't read " + other + " of dfs.datanode.data.dir", 2, Level.OK, Level.ERROR);
      node.show(
          new Folder(View.READABLE, data.toString()),
          new Folder(View.READABLE, other),
          new Folder(View.READABLE, dir.toString()));
      assertFolder("which is not in dfs", 3, Level.OK, Level.OK, Level.ERROR);
      conf.set("dfs.datanode.data.dir", other);
      for (View view : View.values()) {
        String says =
            switch (view) {
              case READABLE -> "can read blocks below " + other;
              case MISSING -> "does not exist";
              case DENIED -> "run it as the DataNode's user";
              case UNUSED -> "no DataNode has used it";
              case FAILED -> "check its disk";
              case WAITING -> "was not looked at";
              case UNKNOWN -> "is newer";
            };
        Level level =
            switch (view) {
              case READABLE -> Level.OK;
              case WAITING -> Level.WARNING;
              case UNKNOWN -> Level.NOTE;
              default -> Level.ERROR;
            };
        node.show(new Folder(view, other));
        assertFolder(says, 1, level);
      }
      node.show(new Folder(View.READABLE, other));
      conf.set(Keys.NODE_SSDLET, "own");
      assertFolder("which the node doesn't have", 1, Level.ERROR, Level.OK);
      conf.set(Keys.NODE_SSDLET, "grep");
      conf.setBoolean("dfs.block.access.token.enable", true);
      List<Finding> found =
          process(ProcessCheck::node, Level.WARNING, Level.OK, Level.OK, Level.NOTE);
      assertSays("can't check block tokens", found);
    }
  }

  /** One of the findings between that the node listens and what it has done. */
  private void assertFolder(String part, int at, Level... levels) {
    List<Level> all = new ArrayList<>(List.of(levels));
    all.add(0, Level.OK);
    all.add(Level.NOTE);
    List<Finding> found = process(ProcessCheck::node, all.toArray(new Level[0]));
    assertTrue(found.get(at).sentence().contains(part), found.toString());
  }

  @Test
  void inputFormatsThatDoNotExistAreNamed() {
    conf.set("mapreduce.job.inputformat.class", "no.such.Format");
    assertSays("no.such.Format, which doesn't exist", jobs(JobCheck::mapsOnNode, Level.ERROR));
    conf.set("mapreduce.job.inputformat.class", NodeInputFormat.class.getName());
    conf.set(COLLECTOR, NodeMapOutput.class.getName());
    conf.set(Keys.NODE_INPUT_FORMAT, "no.such.Format");
    assertSays(Keys.NODE_INPUT_FORMAT, jobs(JobCheck::mapsOnNode, Level.ERROR));
    conf.set(
        Keys.NODE_INPUT_FORMAT, "org.apache.hadoop.mapreduce.lib.input.SequenceFileInputFormat");
    assertSays("not the input format for lines", jobs(JobCheck::mapsOnNode, Level.WARNING));
    conf.set(Keys.NODE_INPUT_FORMAT, "org.apache.hadoop.mapreduce.lib.input.TextInputFormat");
    jobs(JobCheck::mapsOnNode, Level.OK);
  }

  @Test
  void mapsMayRunOnTheNode() {
    jobs(JobCheck::mapsOnNode);
    conf.set("mapreduce.job.inputformat.class", NodeInputFormat.class.getName());
    assertSays("doesn't begin with", jobs(JobCheck::mapsOnNode, Level.WARNING));
    conf.set(
        COLLECTOR, NodeMapOutput.class.getName() + "," + DeferredMapOutputBuffer.class.getName());
    jobs(JobCheck::mapsOnNode, Level.OK);
    jobs(JobCheck::collector, Level.OK);
    conf.setBoolean(Keys.NODE_MAP, false);
    assertSays(Keys.NODE_MAP, jobs(JobCheck::mapsOnNode, Level.WARNING));
    conf.setBoolean(Keys.NODE_MAP, true);
    conf.unset("mapreduce.job.inputformat.class");
    conf.set("mapred.input.format.class", MapredNodeInputFormat.class.getName());
    jobs(JobCheck::mapsOnNode, Level.OK);
    conf.set(COLLECTOR, NodeMapOutput.class.getName());
    jobs(JobCheck::collector, Level.WARNING);
  }

  @Test
  void mapTasksDefer() {
    jobs(JobCheck::collector, Level.OK);
    conf.setBoolean(Keys.DEFER, false);
    assertSays(Keys.DEFER, jobs(JobCheck::collector, Level.WARNING));
    conf.set(COLLECTOR, DeferredMapOutputBuffer.class.getName() + ",no.such.Class");
    assertSays("no.such.Class", jobs(JobCheck::collector, Level.ERROR));
    conf.unset(COLLECTOR);
    assertSays("first", jobs(JobCheck::collector, Level.WARNING));
    conf.set("mapreduce.application.framework.path", "hdfs:/mr.tar.gz#mr");
    jobs(JobCheck::collector, Level.WARNING, Level.WARNING);
  }

  @Test
  void reduceTasksMergeOnce() {
    jobs(JobCheck::consumer, Level.OK);
    conf.unset(CONSUMER);
    jobs(JobCheck::consumer, Level.NOTE);
    conf.set(CONSUMER, "no.such.Class");
    jobs(JobCheck::consumer, Level.ERROR);
  }

  @Test
  void theNativeLibraryIsChecked() {
    conf.setBoolean(Keys.REDUCE_NATIVE, false);
    jobs(JobCheck::nativeLibrary, Level.NOTE);
    conf.setBoolean(Keys.REDUCE_NATIVE, true);
    Level level = NativeLibrary.whyNot().isEmpty() ? Level.OK : Level.WARNING;
    jobs(JobCheck::nativeLibrary, level);
  }

  @Test
  void dataThatNeverDefersIsNamed() {
    jobs(JobCheck::intermediateData);
    conf.setBoolean("mapreduce.map.output.compress", true);
    conf.setBoolean("mapreduce.job.encrypted-intermediate-data", true);
    jobs(JobCheck::intermediateData, Level.WARNING, Level.WARNING);
  }

  @Test
  void thresholdsInForceAreReported() {
    conf.setInt(Keys.MIN_SPILLS, 1);
    conf.setInt(Keys.MAX_SPILLS, 9);
    conf.setLong(Keys.MIN_RECORD_BYTES, 300);
    conf.setLong(Keys.MIN_SEGMENT_BYTES, 5000);
    assertSays(
        "2 to 9 spills, records of 300 bytes and segments of 5000",
        jobs(JobCheck::thresholds, Level.NOTE));
  }

  @Test
  void spillsAreEstimated() {
    assertEquals(1, JobCheck.spills(0, 100, 1000));
    assertEquals(1, JobCheck.spills(1000, 1000, 1016));
    assertEquals(2, JobCheck.spills(1000, 1000, 1015));
    conf.setInt("mapreduce.task.io.sort.mb", 100);
    assertSays(
        "128 MiB makes 2 spills of 100-byte records and 2 of 4 KiB",
        jobs(JobCheck::spills, Level.OK));
    conf.setInt("mapreduce.task.io.sort.mb", 1000);
    assertSays("never written twice", jobs(JobCheck::spills, Level.NOTE));
  }

  @Test
  void theCommandSaysWhetherTheNodeIsReady() throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    ByteArrayOutputStream err = new ByteArrayOutputStream();
    assertEquals(2, run(out, err, "check", "--jsno"));
    assertTrue(err.toString(StandardCharsets.UTF_8).contains("--jsno: usage"));
    // The configuration of this process names no shuffle service.
    assertEquals(1, run(out, err, "check"));
    assertTrue(out.toString(StandardCharsets.UTF_8).contains("This node is not ready"));
    out.reset();
    assertEquals(1, run(out, err, "--json"));
    JsonNode json = new ObjectMapper().readTree(out.toByteArray());
    assertEquals(false, json.get("ready").asBoolean());
    assertEquals("hadoop", json.get("findings").get(0).get("what").asText());
    assertEquals("ok", json.get("findings").get(0).get("level").asText());
  }

  private static int run(ByteArrayOutputStream out, ByteArrayOutputStream err, String... args) {
    return NodeCheck.run(args, new PrintStream(out, true), new PrintStream(err, true));
  }

  private List<Finding> installation(Consumer<InstallationCheck> what, Level... levels) {
    List<Finding> found = new ArrayList<>();
    what.accept(new InstallationCheck(conf, found));
    return assertLevels(found, levels);
  }

  private List<Finding> process(Consumer<ProcessCheck> what, Level... levels) {
    List<Finding> found = new ArrayList<>();
    what.accept(new ProcessCheck(conf, found));
    return assertLevels(found, levels);
  }

  private List<Finding> jobs(Consumer<JobCheck> what, Level... levels) {
    List<Finding> found = new ArrayList<>();
    what.accept(new JobCheck(conf, found));
    return assertLevels(found, levels);
  }

  private static List<Finding> assertLevels(List<Finding> found, Level... levels) {
    assertEquals(List.of(levels), found.stream().map(Finding::level).toList(), found.toString());
    return found;
  }

  private static void assertSays(String part, List<Finding> findings) {
    assertTrue(findings.get(0).sentence().contains(part), findings.toString());
  }

  /** Answers a hello, and a merge with an error of a kind; with kind -1 it hangs up at once. */
  private static final class FakeProcess implements AutoCloseable {
    private final ServerSocketChannel server;
    private final Thread thread;

    FakeProcess(Path socket, int errorKind, String sentence) throws IOException {
      server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
      server.bind(UnixDomainSocketAddress.of(socket));
      thread = new Thread(() -> serve(errorKind, sentence));
      thread.start();
    }

    private void serve(int errorKind, String sentence) {
      try (SocketChannel client = server.accept()) {
        DataInputStream in = new DataInputStream(Channels.newInputStream(client));
        if (errorKind < 0) {
          in.readNBytes(12);
          return;
        }
        DataOutputStream out = new DataOutputStream(Channels.newOutputStream(client));
        while (in.readInt() == 0x4D475348) {
          assertEquals(1, in.readShort());
          int kind = in.readShort();
          in.readNBytes(in.readInt());
          if (kind == 2) {
            out.write(4);
            out.writeInt(19);
            out.writeShort(1);
            out.writeInt(2);
            out.writeLong(4096);
            out.writeBytes("9.8.7");
          } else {
            out.write(3);
            out.writeInt(2 + sentence.length());
            out.writeShort(errorKind);
            out.writeBytes(sentence);
          }
        }
      } catch (IOException e) {
        // The client hung up, as it should when it has asked everything.
      }
    }

    @Override
    public void close() throws IOException {
      server.close();
      try {
        thread.join();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
