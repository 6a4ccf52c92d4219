package io.merganser.hadoop.node;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.node.NodeProgram.Combine;
import io.merganser.hadoop.node.NodeProgram.Type;
import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.InputFormat;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Partitioner;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.lib.input.KeyValueTextInputFormat;
import org.apache.hadoop.mapreduce.lib.input.TextInputFormat;
import org.apache.hadoop.mapreduce.lib.map.InverseMapper;
import org.apache.hadoop.mapreduce.lib.map.RegexMapper;
import org.apache.hadoop.mapreduce.lib.map.TokenCounterMapper;
import org.apache.hadoop.mapreduce.lib.partition.BinaryPartitioner;
import org.apache.hadoop.mapreduce.lib.reduce.IntSumReducer;
import org.apache.hadoop.mapreduce.lib.reduce.LongSumReducer;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NodeRulesTest {
  private static final TaskAttemptID FIRST = TaskAttemptID.forName("attempt_1_0002_m_000003_0");

  private final JobConf job = new JobConf(false);
  private TaskAttemptID attempt = FIRST;
  private Class<?> inputFormat = TextInputFormat.class;

  /** A job that may run on the node. */
  @BeforeEach
  void configure() {
    job.set(Keys.NODE_SOCKET, "/run/node.sock");
    job.setUseNewMapper(true);
    job.setClass(MRJobConfig.MAP_CLASS_ATTR, TokenCounterMapper.class, Mapper.class);
    job.setMapOutputKeyClass(Text.class);
    job.setMapOutputValueClass(IntWritable.class);
    job.setNumReduceTasks(3);
  }

  private NodeProgram program() throws OnHostException {
    return new NodeRules(job).program(attempt, inputFormat);
  }

  private String refused(HostReason reason) {
    OnHostException e = assertThrows(OnHostException.class, this::program);
    assertEquals(reason, e.reason(), e.getMessage());
    return e.getMessage();
  }

  @Test
  void knownMappersAndCombinersAreFound() throws OnHostException {
    assertEquals(new NodeProgram("wordcount", "", Type.TEXT, Type.INT, Combine.NONE), program());
    job.setClass(MRJobConfig.COMBINE_CLASS_ATTR, IntSumReducer.class, Reducer.class);
    assertEquals(Combine.SUM, program().combine());
  }

  /** A class of the job's own may have the name of a class of Hadoop's. */
  @Test
  void classesOfHadoopAreKnownByTheirJar(@TempDir Path dir) throws Exception {
    String mapper = "org.apache.hadoop.examples.WordCount$TokenizerMapper";
    job.set(MRJobConfig.MAP_CLASS_ATTR, mapper);
    // The class path of this test has a class of this name, in a folder.
    assertTrue(refused(HostReason.UNKNOWN_MAPPER).contains("test-classes"));
    job.setClassLoader(ownFirst(dir.resolve("job.jar"), mapper, "META-INF/maven/a/b/pom.xml"));
    assertTrue(refused(HostReason.UNKNOWN_MAPPER).contains("job.jar"));
    String examples = "META-INF/maven/org.apache.hadoop/hadoop-mapreduce-examples/pom.properties";
    job.setClassLoader(ownFirst(dir.resolve("examples.jar"), mapper, examples));
    assertEquals("wordcount", program().name());
    String combiner = "org.apache.hadoop.examples.WordCount$IntSumReducer";
    job.set(MRJobConfig.COMBINE_CLASS_ATTR, combiner);
    assertTrue(refused(HostReason.UNKNOWN_COMBINER).contains("test-classes"));
    job.unset(MRJobConfig.COMBINE_CLASS_ATTR);

    // A job may have its classes loaded first, those in Hadoop's packages included.
    String library = TokenCounterMapper.class.getName();
    job.set(MRJobConfig.MAP_CLASS_ATTR, library);
    program();
    job.setClassLoader(ownFirst(dir.resolve("own.jar"), library, examples));
    assertTrue(refused(HostReason.UNKNOWN_MAPPER).contains("own.jar"));
    job.set(MRJobConfig.MAP_CLASS_ATTR, "org.apache.hadoop.examples.WordCount$Gone");
    refused(HostReason.UNKNOWN_MAPPER);
  }

  /** A loader that takes one class from a new jar, which has another file too. */
  private static ClassLoader ownFirst(Path jar, String own, String file) throws IOException {
    ClassLoader parent = NodeRulesTest.class.getClassLoader();
    String entry = own.replace('.', '/') + ".class";
    try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(jar));
        InputStream bytes = parent.getResourceAsStream(entry)) {
      out.putNextEntry(new JarEntry(entry));
      bytes.transferTo(out);
      out.putNextEntry(new JarEntry(file));
    }
    return new URLClassLoader(new URL[] {jar.toUri().toURL()}, parent) {
      @Override
      protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        if (!name.equals(own)) {
          return super.loadClass(name, resolve);
        }
        Class<?> loaded = findLoadedClass(name);
        return loaded != null ? loaded : findClass(name);
      }
    };
  }

  @Test
  void aSearchByTheOldApiIsGrepToo() throws OnHostException {
    job.setUseNewMapper(false);
    job.setMapperClass(org.apache.hadoop.mapred.lib.RegexMapper.class);
    job.setCombinerClass(org.apache.hadoop.mapred.lib.LongSumReducer.class);
    job.setMapOutputValueClass(LongWritable.class);
    job.set(RegexMapper.PATTERN, "ab");
    inputFormat = org.apache.hadoop.mapred.TextInputFormat.class;
    assertEquals(
        new NodeProgram("grep", "{\"text\":\"ab\"}", Type.TEXT, Type.LONG, Combine.SUM), program());
  }

  @Test
  void aSearchForAPlainTextIsGrep() throws OnHostException {
    job.setClass(MRJobConfig.MAP_CLASS_ATTR, RegexMapper.class, Mapper.class);
    job.setMapOutputValueClass(LongWritable.class);
    job.setClass(MRJobConfig.COMBINE_CLASS_ATTR, LongSumReducer.class, Reducer.class);
    job.set(RegexMapper.PATTERN, "a \"plain\" text \u00fc");
    assertEquals(
        new NodeProgram(
            "grep",
            "{\"text\":\"a \\\"plain\\\" text \u00fc\"}",
            Type.TEXT,
            Type.LONG,
            Combine.SUM),
        program());
    for (String pattern : new String[] {"", "a.c", "a|b", "[ab]", "a\\b", "x{2}", "^a", "\uFFFD"}) {
      job.set(RegexMapper.PATTERN, pattern);
      assertTrue(refused(HostReason.UNKNOWN_MAPPER).contains("plain texts"));
    }
    job.set(RegexMapper.PATTERN, "plain");
    job.setInt(RegexMapper.GROUP, 1);
    refused(HostReason.UNKNOWN_MAPPER);
  }

  @Test
  void authorsOfJobsNameOtherPrograms() throws OnHostException {
    job.setClass(MRJobConfig.MAP_CLASS_ATTR, InverseMapper.class, Mapper.class);
    assertTrue(refused(HostReason.UNKNOWN_MAPPER).contains(InverseMapper.class.getName()));
    job.set(Keys.NODE_SSDLET, "terms");
    job.set(Keys.NODE_ARGUMENTS, "{\"n\": 1}");
    assertEquals(
        new NodeProgram("terms", "{\"n\": 1}", Type.TEXT, Type.INT, Combine.NONE), program());
  }

  @Test
  void authorsOfJobsBringPrograms(@TempDir Path dir) throws IOException, OnHostException {
    Path file = Files.write(dir.resolve("words.wasm"), new byte[] {1, 2});
    job.set(Keys.NODE_SSDLET, "wasm:" + file);
    job.set(Keys.NODE_ARGUMENTS, "any text");
    NodeProgram found = program();
    assertEquals(file.toString(), found.name());
    assertEquals("any text", found.arguments());
    assertArrayEquals(new byte[] {1, 2}, found.module().orElseThrow().bytes());
    // A file of the class path, as in the jar of a job.
    job.set(Keys.NODE_SSDLET, "wasm:io/merganser/hadoop/config/Keys.class");
    assertTrue(program().module().orElseThrow().bytes().length > 100);
    job.set(Keys.NODE_SSDLET, "wasm:" + dir.resolve("gone.wasm"));
    assertTrue(refused(HostReason.PROGRAM_FILE).contains("neither in the task's working"));
    Files.write(file, new byte[NodeModule.BYTES_MAX + 1]);
    job.set(Keys.NODE_SSDLET, "wasm:" + file);
    assertTrue(refused(HostReason.PROGRAM_FILE).contains("more than 4194304 bytes"));
    // Not a path at all.
    job.set(Keys.NODE_SSDLET, "wasm:a\0b");
    refused(HostReason.PROGRAM_FILE);
  }

  @Test
  void otherCombinersAreRefusedUnlessTheirAuthorSaysWhatTheyDo() throws OnHostException {
    job.setClass(MRJobConfig.COMBINE_CLASS_ATTR, Reducer.class, Reducer.class);
    refused(HostReason.UNKNOWN_COMBINER);
    job.set(Keys.NODE_COMBINE, "distinct");
    assertEquals(Combine.DISTINCT, program().combine());
    for (String wrong : new String[] {"max", "none"}) {
      job.set(Keys.NODE_COMBINE, wrong);
      refused(HostReason.UNKNOWN_COMBINER);
    }
    job.set(Keys.NODE_COMBINE, "sum");
    job.setCombinerKeyGroupingComparator(BytesWritable.Comparator.class);
    refused(HostReason.UNKNOWN_COMBINER);
  }

  @Test
  void aJobThatSwitchesItOffStaysOnTheHost() {
    job.setBoolean(Keys.NODE_MAP, false);
    refused(HostReason.SWITCHED_OFF);
  }

  @Test
  void withoutASocketMapsStayOnTheHost() {
    job.unset(Keys.NODE_SOCKET);
    refused(HostReason.NO_SOCKET);
  }

  @Test
  void onASecureClusterMapsStayOnTheHost() {
    job.set("hadoop.security.authentication", "kerberos");
    refused(HostReason.SECURE);
  }

  @Test
  void anotherAttemptStaysOnTheHost() {
    attempt = TaskAttemptID.forName("attempt_1_0002_m_000003_1");
    refused(HostReason.RETRY);
  }

  @Test
  void onlyLinesOfTextAreMapped() {
    inputFormat = KeyValueTextInputFormat.class;
    refused(HostReason.UNKNOWN_INPUT);
    inputFormat = Derived.class;
    refused(HostReason.UNKNOWN_INPUT);
  }

  /** A class of a job, which may read otherwise than its parent. */
  private static final class Derived extends TextInputFormat {}

  @Test
  void delimitersAreNeitherEmptyNorLong() throws OnHostException {
    for (String delimiter : new String[] {";", "\r\n", "\u00fc", "d".repeat(64)}) {
      job.set("textinputformat.record.delimiter", delimiter);
      program();
    }
    for (String delimiter : new String[] {"", "d".repeat(65), "\u00fc".repeat(33)}) {
      job.set("textinputformat.record.delimiter", delimiter);
      refused(HostReason.DELIMITER);
    }
  }

  @Test
  void limitsOfLinesAreSensible() throws OnHostException {
    assertEquals(Integer.MAX_VALUE, new NodeRules(job).lineMax());
    job.setInt("mapreduce.input.linerecordreader.line.maxlength", 4);
    assertEquals(4, new NodeRules(job).lineMax());
    job.setInt("mapreduce.input.linerecordreader.line.maxlength", 3);
    OnHostException e = assertThrows(OnHostException.class, () -> new NodeRules(job).lineMax());
    assertEquals(HostReason.LINE_LIMIT, e.reason());
  }

  /**
   * The reader of the old API drops the last line of a split if it is too long; the other cuts it.
   */
  @Test
  void anyLimitOfLinesKeepsAnOldJobOnTheHost() throws OnHostException {
    job.setUseNewMapper(false);
    assertEquals(Integer.MAX_VALUE, new NodeRules(job).lineMax());
    job.setInt("mapreduce.input.linerecordreader.line.maxlength", Integer.MAX_VALUE);
    assertEquals(Integer.MAX_VALUE, new NodeRules(job).lineMax());
    for (int limit : new int[] {4, 40, Integer.MAX_VALUE - 1}) {
      job.setInt("mapreduce.input.linerecordreader.line.maxlength", limit);
      OnHostException e = assertThrows(OnHostException.class, () -> new NodeRules(job).lineMax());
      assertEquals(HostReason.LINE_LIMIT, e.reason());
    }
  }

  @Test
  void outputsOfOtherFormsAreRefused() {
    job.setNumReduceTasks(32_769);
    refused(HostReason.MANY_PARTITIONS);
    job.setNumReduceTasks(32_768);
    job.setBoolean(MRJobConfig.MR_ENCRYPTED_INTERMEDIATE_DATA, true);
    refused(HostReason.ENCRYPTED_OUTPUT);
  }

  @Test
  void otherPartitionersAreRefusedIfTheyAreAsked() throws OnHostException {
    job.setClass(MRJobConfig.PARTITIONER_CLASS_ATTR, BinaryPartitioner.class, Partitioner.class);
    refused(HostReason.UNKNOWN_PARTITIONER);
    // Hadoop asks no partitioner for one reducer.
    job.setNumReduceTasks(1);
    program();
  }

  @Test
  void otherOrdersAreRefused() {
    job.setOutputKeyComparatorClass(BytesWritable.Comparator.class);
    refused(HostReason.UNKNOWN_ORDER);
  }

  @Test
  void otherTypesAreRefused() {
    job.setMapOutputValueClass(BytesWritable.class);
    refused(HostReason.UNKNOWN_TYPES);
    job.setMapOutputValueClass(IntWritable.class);
    job.setMapOutputKeyClass(IntWritable.class);
    // The comparator of the keys is looked at first.
    refused(HostReason.UNKNOWN_ORDER);
  }

  @Test
  void anOldJobWithARunnerOfItsOwnIsRefused() {
    job.setUseNewMapper(false);
    job.setMapRunnerClass(org.apache.hadoop.mapred.lib.MultithreadedMapRunner.class);
    refused(HostReason.UNKNOWN_MAPPER);
  }

  @Test
  void aWrongInputFormatIsAMistakeOfTheJob() {
    job.setClass(Keys.NODE_INPUT_FORMAT, NodeInputFormat.class, InputFormat.class);
    assertThrows(
        IllegalArgumentException.class,
        () -> new NodeInputFormat<>().getSplits(org.apache.hadoop.mapreduce.Job.getInstance(job)));
  }
}
