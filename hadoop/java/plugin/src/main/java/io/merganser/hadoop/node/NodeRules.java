package io.merganser.hadoop.node;

import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.node.NodeProgram.Combine;
import io.merganser.hadoop.node.NodeProgram.Type;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import org.apache.hadoop.io.RawComparator;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.serializer.SerializationFactory;
import org.apache.hadoop.io.serializer.WritableSerialization;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.MapRunner;
import org.apache.hadoop.mapreduce.CryptoUtils;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.lib.input.LineRecordReader;
import org.apache.hadoop.mapreduce.lib.partition.HashPartitioner;
import org.apache.hadoop.security.SecurityUtil;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.UserGroupInformation.AuthenticationMethod;

/**
 * Decides whether the maps of a job may run on the node, and as which program. Only what is known
 * to give the same result may; everything else stays on the host.
 */
final class NodeRules {
  /** Most reducers of a request. */
  private static final int PARTITIONS_MAX = 32_768;

  /** Most bytes of a record delimiter, as the protocol has it. */
  private static final int DELIMITER_BYTES_MAX = 64;

  /** The least limit of a line's length: a mark of byte order and a byte. */
  private static final int LINE_MAX_LEAST = 4;

  /** Hadoop's default, which limits nothing. */
  private static final int NO_LINE_MAX = Integer.MAX_VALUE;

  private static final String DELIMITER = "textinputformat.record.delimiter";

  private final JobConf job;

  NodeRules(JobConf job) {
    this.job = job;
  }

  /**
   * The program for the job's mapper.
   *
   * @param inputFormat the job's own input format
   * @throws OnHostException if its maps must run on the host
   */
  NodeProgram program(TaskAttemptID attempt, Class<?> inputFormat) throws OnHostException {
    task(attempt);
    input(inputFormat);
    output();
    return program();
  }

  private void task(TaskAttemptID attempt) throws OnHostException {
    if (!job.getBoolean(Keys.NODE_MAP, Keys.DEFAULT_NODE_MAP)) {
      throw new OnHostException(HostReason.SWITCHED_OFF, Keys.NODE_MAP + " is false");
    }
    if (job.getTrimmed(Keys.NODE_SOCKET, "").isEmpty()) {
      throw new OnHostException(HostReason.NO_SOCKET, Keys.NODE_SOCKET + " is not set");
    }
    if (UserGroupInformation.isSecurityEnabled()
        || SecurityUtil.getAuthenticationMethod(job) != AuthenticationMethod.SIMPLE) {
      throw new OnHostException(
          HostReason.SECURE, "the cluster is secure, and the node can't check block tokens");
    }
    if (attempt.getId() != 0) {
      throw new OnHostException(HostReason.RETRY, "this is attempt " + attempt.getId());
    }
  }

  private void input(Class<?> inputFormat) throws OnHostException {
    boolean lines =
        inputFormat == org.apache.hadoop.mapreduce.lib.input.TextInputFormat.class
            || inputFormat == org.apache.hadoop.mapred.TextInputFormat.class;
    if (!lines) {
      throw new OnHostException(
          HostReason.UNKNOWN_INPUT, inputFormat.getName() + " is not the input format for lines");
    }
    int bytes = delimiter().map(d -> d.length).orElse(1);
    if (bytes == 0 || bytes > DELIMITER_BYTES_MAX) {
      throw new OnHostException(HostReason.DELIMITER, DELIMITER + " has " + bytes + " bytes");
    }
  }

  /** The bytes of the job's own record delimiter; empty if lines end with LF, CR or CRLF. */
  Optional<byte[]> delimiter() {
    return Optional.ofNullable(job.get(DELIMITER)).map(d -> d.getBytes(StandardCharsets.UTF_8));
  }

  /**
   * The job drops lines of this many bytes or more. The node treats the last line of a split as the
   * reader of the new API does, which cuts it instead of dropping it. The reader of the old API
   * drops that one too.
   */
  int lineMax() throws OnHostException {
    int bytes = job.getInt(LineRecordReader.MAX_LINE_LENGTH, NO_LINE_MAX);
    boolean newReader = job.getUseNewMapper() || bytes == NO_LINE_MAX;
    if (bytes < LINE_MAX_LEAST || !newReader) {
      throw new OnHostException(
          HostReason.LINE_LIMIT,
          LineRecordReader.MAX_LINE_LENGTH
              + " is "
              + bytes
              + (newReader ? "" : ", which the old API's reader takes differently"));
    }
    return bytes;
  }

  private void output() throws OnHostException {
    int reducers = job.getNumReduceTasks();
    if (reducers > PARTITIONS_MAX) {
      throw new OnHostException(
          HostReason.MANY_PARTITIONS,
          reducers
              + " reducers are more than the "
              + PARTITIONS_MAX
              + " that a node partitions for");
    }
    if (CryptoUtils.isEncryptedSpillEnabled(job)) {
      throw new OnHostException(
          HostReason.ENCRYPTED_OUTPUT, MRJobConfig.MR_ENCRYPTED_INTERMEDIATE_DATA + " is true");
    }
    Class<?> partitioner = partitioner();
    if (reducers > 1
        && partitioner != HashPartitioner.class
        && partitioner != org.apache.hadoop.mapred.lib.HashPartitioner.class) {
      throw new OnHostException(
          HostReason.UNKNOWN_PARTITIONER, "the node doesn't know " + partitioner.getName());
    }
    RawComparator<?> comparator = job.getOutputKeyComparator();
    if (comparator.getClass() != Text.Comparator.class) {
      throw new OnHostException(
          HostReason.UNKNOWN_ORDER, "the node doesn't sort as " + comparator.getClass().getName());
    }
  }

  private Class<?> partitioner() {
    return job.getUseNewMapper()
        ? job.getClass(MRJobConfig.PARTITIONER_CLASS_ATTR, HashPartitioner.class)
        : job.getPartitionerClass();
  }

  private NodeProgram program() throws OnHostException {
    Type key = type(job.getMapOutputKeyClass());
    Type value = type(job.getMapOutputValueClass());
    if (key != Type.TEXT) {
      throw new OnHostException(
          HostReason.UNKNOWN_TYPES, "the node sorts Text keys, not " + job.getMapOutputKeyClass());
    }
    String named = job.getTrimmed(Keys.NODE_SSDLET, "");
    String arguments = job.getTrimmed(Keys.NODE_ARGUMENTS, "");
    if (named.isEmpty()) {
      String mapper = mapper();
      named =
          KnownMappers.program(mapper, job)
              .orElseThrow(
                  () ->
                      new OnHostException(
                          HostReason.UNKNOWN_MAPPER,
                          "no program of the node is known for "
                              + mapper
                              + origin(mapper)
                              + ", and "
                              + Keys.NODE_SSDLET
                              + " is not set"));
      arguments = KnownMappers.arguments(named, job);
    }
    Combine combine = combine();
    if (!named.startsWith(NodeModule.PREFIX)) {
      return new NodeProgram(named, arguments, key, value, combine);
    }
    String file = named.substring(NodeModule.PREFIX.length());
    NodeModule module = NodeModule.read(file, job.getClassLoader());
    return new NodeProgram(file, Optional.of(module), arguments, key, value, combine);
  }

  private Type type(Class<?> writable) throws OnHostException {
    Optional<Type> type = KnownMappers.type(writable);
    if (type.isEmpty()
        || !(new SerializationFactory(job).getSerialization(writable)
            instanceof WritableSerialization)) {
      throw new OnHostException(
          HostReason.UNKNOWN_TYPES, "the node doesn't write " + writable.getName());
    }
    return type.get();
  }

  /** The name of the class that maps records. */
  private String mapper() throws OnHostException {
    if (job.getUseNewMapper()) {
      return job.get(MRJobConfig.MAP_CLASS_ATTR, "");
    }
    if (job.getMapRunnerClass() != MapRunner.class) {
      throw new OnHostException(
          HostReason.UNKNOWN_MAPPER, "the mapper is run by " + job.getMapRunnerClass().getName());
    }
    return job.getMapperClass().getName();
  }

  private Combine combine() throws OnHostException {
    String combiner =
        job.getCombinerClass() != null
            ? job.getCombinerClass().getName()
            : job.get(MRJobConfig.COMBINE_CLASS_ATTR);
    if (combiner == null) {
      return Combine.NONE;
    }
    if (job.getCombinerKeyGroupingComparator().getClass() != Text.Comparator.class) {
      throw new OnHostException(
          HostReason.UNKNOWN_COMBINER, "the combiner groups keys by a comparator of its own");
    }
    String named = job.getTrimmed(Keys.NODE_COMBINE, "");
    if (!named.isEmpty()) {
      return Arrays.stream(Combine.values())
          .filter(c -> c != Combine.NONE && c.name().equals(named.toUpperCase(Locale.ROOT)))
          .findFirst()
          .orElseThrow(
              () ->
                  new OnHostException(
                      HostReason.UNKNOWN_COMBINER,
                      Keys.NODE_COMBINE + " is " + named + ", not sum or distinct"));
    }
    return KnownMappers.combine(combiner, job)
        .orElseThrow(
            () ->
                new OnHostException(
                    HostReason.UNKNOWN_COMBINER,
                    "the node can't combine as " + combiner + origin(combiner)));
  }

  /** Where a class of the job comes from, for messages. */
  private String origin(String name) {
    return Optional.ofNullable(job.getClassByNameOrNull(name))
        .flatMap(JarOf::of)
        .map(jar -> " of " + jar)
        .orElse("");
  }
}
